import type { Queryable } from '../../platform/postgres/db.ts';
import { dropOfMessages } from '../uploads/sql.ts';
import type { MessageRow } from './reader.ts';

export async function editMessage(
  db: Queryable,
  env: number,
  row: MessageRow,
  fields: { text: string | null; metadata: string | null; at: string },
): Promise<MessageRow> {
  await db.query(
    `UPDATE messages SET text = $4, metadata = $5, version = version + 1, edited_at = $6
     WHERE env = $1 AND conv = $2 AND seq = $3`,
    [env, row.conv, row.seq, fields.text, fields.metadata, fields.at],
  );
  return {
    ...row,
    text: fields.text,
    metadata: fields.metadata,
    version: row.version + 1,
    editedAt: fields.at,
  };
}

/**
 * Empties messages of one conversation (its row is locked) and keeps every count exact: the live total, what each
 * member has read, and each sender's own unread. Their attachments go. Messages that are tombstones already only become hard.
 */
export async function emptyMessages(
  db: Queryable,
  env: number,
  conv: number,
  seqs: number[],
  hard: boolean,
  at: string,
): Promise<void> {
  const live = await db.query<{ seq: number; sender: number | null }>(
    `WITH target AS (
       SELECT seq, sender, deleted_at FROM messages WHERE env = $1 AND conv = $2 AND seq = ANY($3)
     ), emptied AS (
       UPDATE messages SET text = NULL, metadata = NULL, attachments = NULL, reply_to = NULL,
         deleted_at = coalesce(deleted_at, $5::timestamptz), hard = $4
       WHERE env = $1 AND conv = $2 AND seq = ANY($3)
     ) SELECT seq, sender FROM target WHERE deleted_at IS NULL`,
    [env, conv, seqs, hard, at],
  );
  if (live.length === 0) return;
  await dropOfMessages(db, env, conv, seqs);
  await db.query(
    `UPDATE conversations c SET message_count = message_count - $3, last_message_seq = (
       SELECT max(m.seq) FROM messages m WHERE m.env = $1 AND m.conv = $2 AND m.deleted_at IS NULL
         AND m.seq <= c.last_message_seq)
     WHERE env = $1 AND no = $2`,
    [env, conv, live.length],
  );
  await db.query(
    `UPDATE members m SET
       read_count = m.read_count - (SELECT count(*) FROM unnest($3::bigint[]) s WHERE s <= m.last_read_seq),
       own_unread = m.own_unread - (
         SELECT count(*) FROM unnest($3::bigint[], $4::bigint[]) x(s, sender) WHERE x.s > m.last_read_seq AND x.sender = m.usr)
     WHERE m.env = $1 AND m.conv = $2`,
    [env, conv, live.map((l) => l.seq), live.map((l) => l.sender)],
  );
}
