import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { askNewest, compareAll } from './sql/sharing.ts';
import type { Question } from './sql/sharing.ts';

/** Which users share a live conversation (presence#watch-visibility, users#visibility). sql/sharing.ts says how. */

declare module '../context.ts' {
  interface Services {
    sharing: Sharing;
  }
}

/** Returns those of the others that share a live conversation with the user. */
export type Sharing = (env: number, user: number, others: readonly number[]) => Promise<Set<number>>;

/** How many others one statement compares completely: each may have thousands of conversations. */
const comparedAtOnce = 20;
/** Questions that may wait, of all environments and of one; beyond, `service_unavailable`. */
const maxWaiting = 20_000;
const ofOneEnvironment = 5_000;

/**
 * For many questions: those that arrive together become a few statements, run one at a time, so that they never take
 * more than two of the node's connections. Environments take turns.
 */
export function createSharing(db: Queryable): Sharing {
  const turns = { groupOf: (question: Question) => question.env, maxWaiting: ofOneEnvironment };
  const { add: ask } = createBatcher<Question, Set<number>>({
    // Each question has up to 200 others.
    maxBatch: 10,
    maxWaiting,
    turns,
    pace: readPace(),
    run: async (questions) => {
      const pairs = questions.flatMap((q) => q.others.map((other) => ({ env: q.env, user: q.user, other })));
      const rows = await askNewest(db, pairs);
      let at = 0;
      return questions.map((question) => {
        const known = new Set<number>();
        const unknown: number[] = [];
        for (const other of question.others) {
          const shares = rows[at++];
          if (shares === true) known.add(other);
          else if (shares === null) unknown.push(other);
        }
        return unknown.length === 0 ? known : compare({ ...question, others: unknown }, known);
      });
    },
  });
  const { add: askAll } = createBatcher<Question, number[]>({
    maxBatch: 1,
    maxWaiting,
    turns,
    run: async (questions) => Promise.all(questions.map((question) => compareAll(db, question))),
  });
  const compare = async (question: Question, known: Set<number>): Promise<Set<number>> => {
    for (let i = 0; i < question.others.length; i += comparedAtOnce) {
      const others = question.others.slice(i, i + comparedAtOnce);
      for (const other of await askAll({ ...question, others })) known.add(other);
    }
    return known;
  };
  return async (env, user, others) => (others.length === 0 ? new Set() : ask({ env, user, others }));
}
