import type { MessageRecord } from '../../platform/history/port.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { ColdRow, MessageRow } from '../message-reader.ts';

/** A message from the customer's database, put back into our store or completed with what our store knows about it. */

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
  ...{
    conv: cold.conv,
    cid: cold.cid,
    seq: cold.seq,
    id: found.id,
    sender: cold.sender,
    senderId: cold.senderId,
  },
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
      ...[
        env,
        conv,
        records.map((r) => r.seq),
        records.map((r) => r.id),
        records.map((r) => r.text),
        records.map((r) => r.replyTo),
      ],
      ...[
        records.map((r) => json(r.metadata)),
        records.map((r) => json(r.attachments)),
        records.map((r) => r.version),
      ],
      ...[records.map((r) => r.createdAt), records.map((r) => r.editedAt)],
    ],
  );
  if (rows.length > 0)
    await db.query(
      `UPDATE sink_conversations SET cold_seq = least(cold_seq, $3::bigint - 1), oldest_at = coalesce(oldest_at, now()) WHERE env = $1 AND conv = $2`,
      [env, conv, Math.min(...rows.map((r) => r.seq))],
    );
  return rows.length;
}
