import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Queryable } from '../../platform/postgres/db.ts';

/**
 * Who shares a live conversation with whom (presence#watch-visibility, users#visibility).
 *
 * For a pair of users, the newest conversations of one are tried one by one, then those of the other. This is exact
 * if one of them has no more than `few`, and it bounds the cost of a pair however many conversations they have. Only
 * if both have more are all of them compared.
 */

/** How many conversations of a user are tried one by one. */
const few = 64;

/** LIMIT makes each of these one index look-up, whatever the planner expects; for `env + 0` see lookups.ts. */
const sharesOneOfNewest = (user: string, other: string): string => `EXISTS (
  SELECT 1 FROM (SELECT conv FROM members WHERE usr = ${user} AND env + 0 = w.env ORDER BY last_activity_step DESC LIMIT ${few}) m
  CROSS JOIN LATERAL (SELECT 1 FROM members WHERE conv = m.conv AND usr = ${other} AND env = w.env LIMIT 1) o
  CROSS JOIN LATERAL (SELECT 1 FROM conversations WHERE no = m.conv AND env = w.env AND deleted_at IS NULL LIMIT 1) c)`;
const hasMore = (user: string): string =>
  `EXISTS (SELECT 1 FROM members WHERE usr = ${user} AND env + 0 = w.env ORDER BY last_activity_step DESC OFFSET ${few} LIMIT 1)`;

/** The result is null if both have many conversations and share none of the newest. */
const newestSql = `
  SELECT CASE
    WHEN ${sharesOneOfNewest('w.other', 'w.usr')} THEN true
    WHEN NOT ${hasMore('w.other')} THEN false
    WHEN ${sharesOneOfNewest('w.usr', 'w.other')} THEN true
    WHEN NOT ${hasMore('w.usr')} THEN false
  END AS shares
  FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w(env, usr, other, ord) ORDER BY w.ord`;

/** INTERSECT compares two lists by hashing or sorting them: the cost is the sum of their lengths, never the product. */
const allSql = `
  WITH mine AS MATERIALIZED (SELECT conv FROM members WHERE usr = $2 AND env + 0 = $1)
  SELECT w.other FROM unnest($3::bigint[]) AS w(other) WHERE EXISTS (
    SELECT 1 FROM (SELECT conv FROM mine INTERSECT SELECT conv FROM members WHERE usr = w.other AND env + 0 = $1) m
    CROSS JOIN LATERAL (SELECT 1 FROM conversations WHERE no = m.conv AND env = $1 AND deleted_at IS NULL LIMIT 1) c)`;

interface Question {
  env: number;
  user: number;
  others: readonly number[];
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

/** Answers one question alone, about at most 200 others. */
export async function sharedOf(
  db: Queryable,
  env: number,
  user: number,
  others: readonly number[],
): Promise<Set<number>> {
  if (others.length === 0) return new Set();
  const shares = await askNewest(
    db,
    others.map((other) => ({ env, user, other })),
  );
  const shared = new Set(others.filter((_, i) => shares[i] === true));
  const unknown = others.filter((_, i) => shares[i] === null);
  for (let i = 0; i < unknown.length; i += comparedAtOnce)
    for (const other of await compareAll(db, { env, user, others: unknown.slice(i, i + comparedAtOnce) }))
      shared.add(other);
  return shared;
}

/** Answers one question alone. */
export async function sharesConversation(
  db: Queryable,
  env: number,
  user: number,
  other: number,
): Promise<boolean> {
  const [shares] = await askNewest(db, [{ env, user, other }]);
  return shares ?? (await compareAll(db, { env, user, others: [other] })).length > 0;
}

const askNewest = async (
  db: Queryable,
  pairs: readonly { env: number; user: number; other: number }[],
): Promise<(boolean | null)[]> =>
  (
    await db.query<{ shares: boolean | null }>(newestSql, [
      pairs.map((p) => p.env),
      pairs.map((p) => p.user),
      pairs.map((p) => p.other),
    ])
  ).map((row) => row.shares);

const compareAll = async (db: Queryable, { env, user, others }: Question): Promise<number[]> =>
  (await db.query<{ other: number }>(allSql, [env, user, others])).map((row) => row.other);
