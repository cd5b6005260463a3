import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import type { ColdRow, MessageRow } from '../message-reader.ts';

/**
 * Messages from a customer's database: completed with what our store knows about them, or put back into our store
 * because they are needed here, or because history comes back.
 */

const json = (text: string | null): string | null => {
  if (text === null) return null;
  try {
    JSON.parse(text);
    return text;
  } catch {
    // Somebody changed it there: unreadable JSON is not shown.
    return null;
  }
};

/** The sender and the deletion come from our own store, because names may have been erased since. */
export const warmRow = (cold: ColdRow, found: MessageRecord): MessageRow => ({
  conv: cold.conv,
  cid: cold.cid,
  seq: cold.seq,
  id: found.id,
  sender: cold.sender,
  senderId: cold.senderId,
  text: found.text,
  replyTo: found.replyTo,
  metadata: json(found.metadata),
  attachments: json(found.attachments),
  version: found.version,
  createdAt: found.createdAt,
  editedAt: found.editedAt,
  deletedAt: cold.deletedAt,
  hard: false,
});

/** The conversation must be locked, unless nothing else can change these rows. Returns how many messages came back. */
export async function thawMessages(
  db: Queryable,
  env: number,
  conv: number,
  records: readonly MessageRecord[],
): Promise<number> {
  if (records.length === 0) return 0;
  const rows = await db.query<{ seq: number }>(
    `UPDATE messages m SET id = r.id, text = r.text, reply_to = r.reply_to, metadata = r.metadata, attachments = r.attachments, version = r.version,
       created_at = r.created_at, edited_at = r.edited_at
     FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::timestamptz[], $11::timestamptz[])
       AS r(seq, id, text, reply_to, metadata, attachments, version, created_at, edited_at)
     WHERE m.env = $1 AND m.conv = $2 AND m.seq = r.seq AND m.id IS NULL AND NOT m.hard
     RETURNING m.seq`,
    [
      env,
      conv,
      records.map((r) => r.seq),
      records.map((r) => r.id),
      records.map((r) => r.text),
      records.map((r) => r.replyTo),
      records.map((r) => json(r.metadata)),
      records.map((r) => json(r.attachments)),
      records.map((r) => r.version),
      records.map((r) => r.createdAt),
      records.map((r) => r.editedAt),
    ],
  );
  if (rows.length > 0)
    await db.query(
      `UPDATE sink_conversations SET cold_seq = least(cold_seq, $3::bigint - 1), oldest_at = coalesce(oldest_at, now()) WHERE env = $1 AND conv = $2`,
      [env, conv, Math.min(...rows.map((r) => r.seq))],
    );
  return rows.length;
}

/**
 * Puts messages back into our store. The conversation's `cold_seq` must stay until the copy has passed it, because it
 * tells which conversations must be copied. Returns how many messages were missing here.
 */
export async function comeBack(
  tx: Queryable,
  env: number,
  conv: number,
  records: readonly MessageRecord[],
): Promise<number> {
  const [floor] = await tx.query<{ cold: number }>(
    'SELECT cold_seq AS cold FROM sink_conversations WHERE env = $1 AND conv = $2 FOR UPDATE',
    [env, conv],
  );
  const count = await thawMessages(tx, env, conv, records);
  if (floor && count > 0)
    await tx.query('UPDATE sink_conversations SET cold_seq = $3 WHERE env = $1 AND conv = $2', [
      env,
      conv,
      floor.cold,
    ]);
  return count;
}

/** How many messages of a conversation did not come back, because the customer's database no longer has them. */
export async function stayedAway(db: Queryable, env: number, conv: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    'SELECT count(*) AS n FROM messages WHERE env = $1 AND conv = $2 AND id IS NULL AND NOT hard',
    [env, conv],
  );
  return row!.n;
}

const mostWanted = 100;

/** Brings back messages that are needed here again. */
export async function thawWanted(db: Db, env: number, histories: readonly History[]): Promise<void> {
  const rows = await db.query<{ conv: number; id: string; seq: number }>(
    `SELECT s.conv, c.id, s.want_seq AS seq FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
     WHERE s.env = $1 AND s.want_seq IS NOT NULL LIMIT ${mostWanted}`,
    [env],
  );
  for (const { conv, id, seq } of rows)
    for (const history of histories) {
      const { data } = await history.read({
        conversationId: id,
        before: seq + 1,
        after: seq - 1,
        limit: 1,
      });
      await db.tx(async (tx) => {
        await tx.query('SELECT 1 FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE', [
          env,
          conv,
        ]);
        await thawMessages(tx, env, conv, data);
        await tx.query(
          'UPDATE sink_conversations SET want_seq = NULL WHERE env = $1 AND conv = $2 AND want_seq = $3',
          [env, conv, seq],
        );
      });
      if (data.length > 0) break;
    }
}
