import type { MessageRecord } from '../../../platform/history/port.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf, column, firstValue, oneValue } from '../../../platform/postgres/rows.ts';
import { conversationOf } from '../../sql/lookups.ts';

/** Messages that come back from a customer's database into our store. */

/** Keeps others from changing the conversation until the transaction ends. */
export const holdConversation = (tx: Queryable, env: number, conv: number) =>
  tx.query('SELECT 1 FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE', [env, conv]);

/**
 * Completes rows of messages that left. Returns how many came back. With `keepsCold`, the conversation's `cold_seq` stays
 * although they are below it.
 */
export async function restoreMessages(
  db: Queryable,
  env: number,
  conv: number,
  records: readonly MessageRecord[],
  keepsCold: boolean,
): Promise<number> {
  const seqs = await column<number>(
    db,
    `UPDATE messages m SET id = r.id, text = r.text, reply_to = r.reply_to, metadata = r.metadata, attachments = r.attachments, version = r.version,
       created_at = r.created_at, edited_at = r.edited_at
     FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::timestamptz[], $11::timestamptz[])
       AS r(seq, id, text, reply_to, metadata, attachments, version, created_at, edited_at)
     WHERE m.env = $1 AND m.conv = $2 AND m.seq = r.seq AND m.id IS NULL AND NOT m.hard
     RETURNING m.seq`,
    [
      env,
      conv,
      ...arraysOf(records, 'seq', 'id', 'text', 'replyTo', 'metadata', 'attachments', 'version'),
      ...arraysOf(records, 'createdAt', 'editedAt'),
    ],
  );
  if (seqs.length > 0)
    await db.query(
      `UPDATE sink_conversations SET cold_seq = CASE WHEN $4 THEN cold_seq ELSE least(cold_seq, $3::bigint - 1) END, oldest_at = coalesce(oldest_at, now()) WHERE env = $1 AND conv = $2`,
      [env, conv, Math.min(...seqs), keepsCold],
    );
  return seqs.length;
}

/** How many messages of a conversation did not come back, because the customer's database no longer has them. */
export const stayedAway = (db: Queryable, env: number, conv: number): Promise<number> =>
  oneValue(
    db,
    'SELECT count(*) AS n FROM messages WHERE env = $1 AND conv = $2 AND id IS NULL AND NOT hard',
    [env, conv],
  );

const mostWanted = 100;

export const wantedMessages = (
  db: Queryable,
  env: number,
): Promise<{ conv: number; id: string; seq: number }[]> =>
  db.query<{ conv: number; id: string; seq: number }>(
    `SELECT s.conv, c.id, s.want_seq AS seq FROM sink_conversations s CROSS JOIN ${conversationOf('s.env', 's.conv')} c
     WHERE s.env = $1 AND s.want_seq IS NOT NULL LIMIT ${mostWanted}`,
    [env],
  );

/** Asks for the latest message of the conversation, if that has left: the sink fetches it back, for lists. */
export const wantLatestMessage = (tx: Queryable, env: number, conv: number) =>
  tx.query(
    `UPDATE sink_conversations s SET want_seq = m.seq FROM conversations c JOIN messages m ON m.env = c.env AND m.conv = c.no
       AND m.seq = c.last_message_seq AND m.id IS NULL
     WHERE s.env = $1 AND s.conv = $2 AND c.env = $1 AND c.no = $2`,
    [env, conv],
  );

/** Asks for a message of a locked conversation, unless another one of it is asked for: `clearWanted` goes on to this one. */
export const wantMessage = (tx: Queryable, env: number, conv: number, seq: number) =>
  tx.query('UPDATE sink_conversations SET want_seq = coalesce(want_seq, $3) WHERE env = $1 AND conv = $2', [
    env,
    conv,
    seq,
  ]);

/** Goes on to the next message that is not here and whose reactions are still to be told. */
export async function clearWanted(
  tx: Queryable,
  env: number,
  conv: number,
  seq: number,
): Promise<number | null> {
  const next = await firstValue<number | null>(
    tx,
    `UPDATE sink_conversations s SET want_seq = (
       SELECT min(r.message) FROM message_reactions r JOIN messages m ON m.env = r.env AND m.conv = r.conv AND m.seq = r.message
       WHERE r.conv = $2 AND r.env = $1 AND r.waiting AND r.message > $3 AND m.id IS NULL AND m.deleted_at IS NULL AND NOT m.hard
     ) WHERE s.env = $1 AND s.conv = $2 AND s.want_seq = $3 RETURNING s.want_seq AS next`,
    [env, conv, seq],
  );
  return next ?? null;
}
