import type { Queryable } from '../../../platform/postgres/db.ts';
import { inConversations } from './counters.ts';
import type { CountedPlace } from './counters.ts';

const deletionSql = ({ places, readers, column, functions }: CountedPlace): string =>
  `WITH moved AS (
       UPDATE ${places} c SET last_deleted_seq = greatest(c.last_deleted_seq, (SELECT max(s) FROM unnest($3::bigint[]) s)),
         last_message_seq = CASE WHEN c.last_message_seq = ANY($3) THEN (
           SELECT m.seq FROM messages m WHERE m.env = $1 AND m.${column} = $2 AND m.deleted_at IS NULL AND m.seq < c.last_message_seq
           ORDER BY m.seq DESC LIMIT 1) ELSE c.last_message_seq END
       WHERE c.env = $1 AND c.no = $2
     ), sent AS (
       UPDATE ${readers} m SET own_unread = m.own_unread - k.n FROM (
         SELECT b.usr, count(*) AS n FROM unnest($3::bigint[], $4::bigint[]) x(seq, sender)
         JOIN ${readers} b ON b.env = $1 AND b.${column} = $2 AND b.usr = x.sender AND b.last_read_seq < x.seq GROUP BY b.usr
       ) k WHERE m.env = $1 AND m.${column} = $2 AND m.usr = k.usr
     ) SELECT ${functions.countDeleted}($1, $2, $3)`;

const inConversationsSql = deletionSql(inConversations);

/**
 * Keeps the counters right after messages of one conversation, whose row is locked, were deleted. The row of a member
 * changes only if that member sent one of the messages and has not read it.
 */
export async function countDeletions(
  db: Queryable,
  env: number,
  conv: number,
  deleted: readonly { seq: number; sender: number | null }[],
): Promise<void> {
  await db.query(inConversationsSql, [env, conv, deleted.map((d) => d.seq), deleted.map((d) => d.sender)]);
}
