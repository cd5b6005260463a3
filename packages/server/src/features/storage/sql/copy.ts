import type { ConversationRecord } from '../../../platform/history/port.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, firstRow, oneRow } from '../../../platform/postgres/rows.ts';
import { conversationOf, memberOf, userOf } from '../../sql/lookups.ts';
import type { Copy } from '../sql.ts';

/** What a copy to or from a customer's database reads here, and how far it is. */

export interface ConversationWithPeople extends Omit<ConversationRecord, 'kind' | 'extras' | 'revision'> {
  no: number;
  /** JSON; null: all as by default. */
  rules: string | null;
  lastSeq: number;
  /** [id, role]; the role is null for a user who is no longer a member. */
  people: [string, string | null][] | null;
}

/** How many former members of a conversation are taken along, those who left last. */
const mostFormer = 10_000;

/** Conversations with their members, and with users who are no longer members since the given time. */
export function conversationsWithPeople(
  db: Queryable,
  env: number,
  convs: readonly number[],
  since: string,
): Promise<ConversationWithPeople[]> {
  return db.query<ConversationWithPeople>(
    `SELECT c.no, c.id, c.type, c.name, c.metadata, c.rules, c.created_at AS "createdAt", c.deleted_at AS "deletedAt", c.last_seq AS "lastSeq", (
       SELECT json_agg(json_build_array(u.id, m.role)) FROM (
         SELECT usr FROM members WHERE env = c.env AND conv = c.no
         UNION (SELECT d.usr FROM departures d WHERE d.env = c.env AND d.conv = c.no AND d.at >= $3::timestamptz ORDER BY d.at DESC LIMIT ${mostFormer})
       ) p CROSS JOIN ${userOf('c.env', 'p.usr')} u LEFT JOIN ${memberOf('c.env', 'c.no', 'p.usr')} m ON true
     ) AS people FROM unnest($2::bigint[]) x(no) CROSS JOIN ${conversationOf('$1', 'x.no')} c`,
    [env, convs, since],
  );
}

const conversationsAtOnce = 50;

/** The next conversations, each with the number of its people. */
export const conversationsFrom = (
  db: Queryable,
  env: number,
  from: number,
): Promise<{ no: number; id: string; flags: number; people: number }[]> =>
  db.query(
    `SELECT c.no, c.id, c.flags, (SELECT count(*) FROM members m WHERE m.env = c.env AND m.conv = c.no) + (SELECT count(*) FROM (
         SELECT 1 FROM departures d WHERE d.env = c.env AND d.conv = c.no ORDER BY d.at DESC LIMIT ${mostFormer}) f) AS people
       FROM conversations c WHERE c.env = $1 AND c.no >= $2 ORDER BY c.no LIMIT ${conversationsAtOnce}`,
    [env, from],
  );

/** The next conversation of which only a customer's database has messages. */
export const nextCold = (
  db: Queryable,
  env: number,
  from: number,
): Promise<{ no: number; id: string } | undefined> =>
  firstRow(
    db,
    `SELECT c.no, c.id FROM sink_conversations s CROSS JOIN ${conversationOf('s.env', 's.conv')} c
     WHERE s.env = $1 AND s.conv >= $2 AND s.cold_seq > 0 ORDER BY s.conv LIMIT 1`,
    [env, from],
  );

/** Locks the environment's row. Returns false if the copy was cancelled, started again, or belongs to another process. */
export const lockCopy = (tx: Queryable, env: number, node: string, startedAt: string): Promise<boolean> =>
  anyRow(tx, `SELECT 1 FROM storage WHERE env = $1 AND owner = $2 AND copy ->> 'startedAt' = $3 FOR UPDATE`, [
    env,
    node,
    startedAt,
  ]);

/** Nothing is in the customer's database alone any more. */
export const setAllWarm = (tx: Queryable, env: number) =>
  tx.query('UPDATE storage SET has_cold = false WHERE env = $1', [env]);

/** Stores where the copy is, unless it was cancelled or started again. */
export const replaceCopy = (db: Queryable, env: number, copy: Copy) =>
  db.query(`UPDATE storage SET copy = $2 WHERE env = $1 AND copy ->> 'startedAt' = $3`, [
    env,
    JSON.stringify(copy),
    copy.startedAt,
  ]);

/** The oldest transaction that is still running, and the number that the next one gets. */
export const runningTransactions = (db: Queryable): Promise<{ oldest: number; next: number }> =>
  oneRow(
    db,
    `SELECT pg_snapshot_xmin(s)::text::bigint AS oldest, pg_snapshot_xmax(s)::text::bigint AS next FROM pg_current_snapshot() s`,
  );
