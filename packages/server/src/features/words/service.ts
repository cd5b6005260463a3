import type { Queryable } from '../../platform/postgres/db.ts';
import type { Environment } from '../context.ts';
import { createKeptVersions } from '../kept-versions.ts';
import { Automaton } from './automaton.ts';
import { allLists } from './sql.ts';

declare module '../context.ts' {
  interface Services {
    words: WordService;
  }
}

interface WordService {
  /** What finds the words of the environment's lists; null if it never had a list. */
  of(env: Pick<Environment, 'no' | 'words'>): Promise<Automaton> | null;
}

/** Environments whose lists are kept ready, those used last. An automaton has a few MB at most. */
const mostKept = 100;

/**
 * Builds an automaton once for each version of an environment's lists, in slices. Whoever sends meanwhile waits for it, so nothing
 * passes unseen; all others go on.
 */
export function createWordService(db: Queryable): WordService {
  const automatonOf = createKeptVersions(mostKept, async ({ no }: { no: number }) =>
    Automaton.build(await allLists(db, no)),
  );
  return { of: (env) => (env.words === 0 ? null : automatonOf(env, env.words)) };
}
