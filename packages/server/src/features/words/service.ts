import type { Queryable } from '../../platform/postgres/db.ts';
import type { Environment } from '../context.ts';
import { Automaton } from './automaton.ts';
import { allLists } from './sql.ts';

declare module '../context.ts' {
  interface Services {
    words: WordService;
  }
}

export interface WordService {
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
  const kept = new Map<number, { version: number; automaton: Promise<Automaton> }>();
  const build = async (env: number): Promise<Automaton> => Automaton.build(await allLists(db, env));
  return {
    of({ no, words: version }) {
      if (version === 0) return null;
      let found = kept.get(no);
      if (found?.version !== version) {
        const made = { version, automaton: build(no) };
        // What could not be read is tried again by the next message.
        made.automaton.catch(() => kept.get(no) === made && kept.delete(no));
        found = made;
      }
      kept.delete(no);
      kept.set(no, found);
      if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
      return found.automaton;
    },
  };
}
