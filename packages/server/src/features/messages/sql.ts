import type { Attachment, Message, MessageOrTombstone, Tombstone } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { parseMetadata } from '../conversations/sql.ts';
import { dropOfMessages } from '../uploads/sql.ts';

export interface MessageRow {
  conv: number;
  cid: string;
  seq: number;
  id: string;
  sender: number | null;
  senderId: string | null;
  text: string | null;
  replyTo: string | null;
  metadata: string | null;
  attachments: string | null;
  version: number;
  createdAt: string;
  editedAt: string | null;
  deletedAt: string | null;
  hard: boolean;
}

const columns = `m.conv, c.id AS cid, m.seq, m.id, m.sender, u.id AS "senderId", m.text, m.reply_to AS "replyTo", m.metadata,
  m.attachments, m.version, m.created_at AS "createdAt", m.edited_at AS "editedAt", m.deleted_at AS "deletedAt", m.hard`;
const source = `messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv
  LEFT JOIN users u ON u.env = m.env AND u.no = m.sender`;

export const viewTombstone = (row: MessageRow): Tombstone => ({
  id: row.id,
  conversationId: row.cid,
  seq: row.seq,
  senderId: row.senderId,
  text: null,
  attachments: [],
  createdAt: row.createdAt,
  deletedAt: row.deletedAt!,
});

export const viewLive = (row: MessageRow): Message => ({
  id: row.id,
  conversationId: row.cid,
  seq: row.seq,
  senderId: row.senderId,
  text: row.text,
  replyTo: row.replyTo,
  attachments: row.attachments === null ? [] : (JSON.parse(row.attachments) as Attachment[]),
  metadata: parseMetadata(row.metadata),
  version: row.version,
  createdAt: row.createdAt,
  editedAt: row.editedAt,
  deletedAt: null,
});

export const viewMessage = (row: MessageRow): MessageOrTombstone =>
  row.deletedAt ? viewTombstone(row) : viewLive(row);

/** Hard-deleted messages are not found by id. */
export async function findMessage(db: Queryable, env: number, id: string): Promise<MessageRow | undefined> {
  const [row] = await db.query<MessageRow>(
    `SELECT ${columns} FROM ${source} WHERE m.env = $1 AND m.id = $2 AND NOT m.hard`,
    [env, id],
  );
  return row;
}

/** Hard-deleted ones included, as stubs: for the answer to a repeated send. */
export async function messageAt(db: Queryable, env: number, conv: number, seq: number): Promise<MessageRow> {
  const [row] = await db.query<MessageRow>(
    `SELECT ${columns} FROM ${source} WHERE m.env = $1 AND m.conv = $2 AND m.seq = $3`,
    [env, conv, seq],
  );
  return row!;
}

export const messagesBefore = (
  db: Queryable,
  env: number,
  conv: number,
  before: number,
  after: number,
  limit: number,
): Promise<MessageRow[]> =>
  db.query<MessageRow>(
    `SELECT ${columns} FROM ${source}
     WHERE m.env = $1 AND m.conv = $2 AND m.seq < $3 AND m.seq > $4 AND NOT m.hard ORDER BY m.seq DESC LIMIT $5`,
    [env, conv, before, after, limit],
  );

export const messagesAfter = (
  db: Queryable,
  env: number,
  conv: number,
  after: number,
  limit: number,
): Promise<MessageRow[]> =>
  db.query<MessageRow>(
    `SELECT ${columns} FROM ${source}
     WHERE m.env = $1 AND m.conv = $2 AND m.seq > $3 AND NOT m.hard ORDER BY m.seq LIMIT $4`,
    [env, conv, after, limit],
  );

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
