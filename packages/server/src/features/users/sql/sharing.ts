import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf, column } from '../../../platform/postgres/rows.ts';

/**
 * Which users share a live conversation.
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

export interface Question {
  env: number;
  user: number;
  others: readonly number[];
}

export const askNewest = (db: Queryable, pairs: readonly { env: number; user: number; other: number }[]) =>
  column<boolean | null>(db, newestSql, arraysOf(pairs, 'env', 'user', 'other'));

export const compareAll = (db: Queryable, { env, user, others }: Question): Promise<number[]> =>
  column(db, allSql, [env, user, others]);
