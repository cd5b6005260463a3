import type { Queryable } from '../../platform/postgres/db.ts';
import type { Environment } from '../context.ts';
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

interface Kept {
  version: number;
  automaton: Promise<Automaton>;
  /** The lists have been read, or are being read. */
  begun: boolean;
}

/**
 * Builds an automaton once for each version of an environment's lists, in slices. Whoever sends meanwhile waits for it, so nothing
 * passes unseen; all others go on. One at a time is built for an environment: of versions that come meanwhile the last.
 */
export function createWordService(db: Queryable): WordService {
  const kept = new Map<number, Kept>();

  function build(env: number, version: number, before: Promise<unknown> | undefined): Kept {
    const made: Kept = { version, begun: false, automaton: later() };
    async function later(): Promise<Automaton> {
      await before?.catch(() => undefined);
      made.begun = true;
      return Automaton.build(await allLists(db, env));
    }
    // What could not be read is tried again by the next message.
    made.automaton.catch(() => kept.get(env) === made && kept.delete(env));
    return made;
  }

  return {
    of({ no, words: version }) {
      if (version === 0) return null;
      let found = kept.get(no);
      // A session may know an older version for a moment. What was read last is newer, and stays.
      if (!found || (found.version < version && found.begun)) found = build(no, version, found?.automaton);
      found.version = Math.max(found.version, version);
      kept.delete(no);
      kept.set(no, found);
      if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
      return found.automaton;
    },
  };
}
