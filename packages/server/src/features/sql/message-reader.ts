import type { Attachment, Mention, Message, MessageOrTombstone, Tombstone } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf, firstRow } from '../../platform/postgres/rows.ts';
import { parseExtras } from '../extras.ts';
import { parseMetadata } from '../metadata.ts';
import { userOf } from './lookups.ts';

/**
 * The only module that reads the content of messages; other code counts them, or asks here. A message may have moved
 * to the customer's database: its row stays, with only what counting needs. History pages fetch the rest from there
 * (features/storage). All other readers leave such rows out, because they are about recent messages.
 */

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
  /** JSON of what extensions keep (features/extras.ts). It stays here when the message moves to the customer's database. */
  extras: string | null;
  /** Those of the extras, with the present ids of users. */
  mentions: Mention[] | null;
}

/** A message that this store no longer holds: where it stands, who sent it and whether it was deleted. */
export interface ColdRow extends Pick<
  MessageRow,
  'conv' | 'cid' | 'seq' | 'sender' | 'senderId' | 'deletedAt' | 'extras' | 'mentions'
> {
  id: null;
}

/** A message without the id of its conversation, which the caller knows. */
export type CopiedRow = Omit<MessageRow, 'cid' | 'sender'>;

const copiedColumns = `m.conv, m.seq, m.id, u.id AS "senderId", m.text, m.reply_to AS "replyTo", m.metadata,
  m.attachments, m.version, m.created_at AS "createdAt", m.edited_at AS "editedAt", m.deleted_at AS "deletedAt", m.hard,
  m.extras, CASE WHEN m.extras IS NOT NULL THEN shown_mentions(m.env, m.extras) END AS mentions`;
const columns = `c.id AS cid, m.sender, ${copiedColumns}`;
/** LIMIT makes these one index look-up per row, whatever the planner expects of the tables. */
const sender =
  'LEFT JOIN LATERAL (SELECT id FROM users WHERE env = m.env AND no = m.sender LIMIT 1) u ON true';
const joined = `CROSS JOIN LATERAL (SELECT id, flags FROM conversations WHERE env = m.env AND no = m.conv LIMIT 1) c ${sender}`;
const source = `messages m ${joined}`;
/** The number of the conversation whose id is the second parameter. */
const byId = '(SELECT no FROM conversations WHERE env = $1 AND id = $2)';

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

/** The fields of a message that `extras` holds. */
export function viewExtras({ extras, mentions }: Pick<MessageRow, 'extras' | 'mentions'>) {
  const { poll } = parseExtras(extras);
  return { ...(mentions ? { mentions } : {}), ...(poll ? { poll } : {}) } satisfies Partial<Message>;
}

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
  ...viewExtras(row),
});

export const viewMessage = (row: MessageRow): MessageOrTombstone =>
  row.deletedAt ? viewTombstone(row) : viewLive(row);

/** Finds a message by id, unless it was hard-deleted. */
export const findMessage = (db: Queryable, env: number, id: string): Promise<MessageRow | undefined> =>
  firstRow(db, `SELECT ${columns} FROM ${source} WHERE m.env = $1 AND m.id = $2 AND NOT m.hard`, [env, id]);

/** The messages with these ids that exist, without hard-deleted ones. */
export const messagesById = (db: Queryable, messages: readonly { env: number; id: string }[]) =>
  db.query<MessageRow & { env: number }>(
    `SELECT m.env, ${columns} FROM unnest($1::int[], $2::text[]) w(env, id)
     CROSS JOIN LATERAL (SELECT * FROM messages WHERE env = w.env AND id = w.id AND NOT hard LIMIT 1) m ${joined}`,
    arraysOf(messages, 'env', 'id'),
  );

export interface MessagePlace {
  env: number;
  conv: number;
  seq: number;
}

/** The messages at these places, of any conversations and in any order, with the flags of the conversation. Hard-deleted ones are included, as stubs. */
export const messagesAt = (
  db: Queryable,
  places: readonly MessagePlace[],
): Promise<(MessageRow & { env: number; flags: number })[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query<MessageRow & { env: number; flags: number }>(
        `SELECT m.env, c.flags, ${columns} FROM unnest($1::int[], $2::bigint[], $3::bigint[]) p(env, conv, seq)
         CROSS JOIN LATERAL (
           SELECT * FROM messages WHERE env = p.env AND conv = p.conv AND seq = p.seq AND id IS NOT NULL LIMIT 1
         ) m ${joined}`,
        arraysOf(places, 'env', 'conv', 'seq'),
      );

/** The same with those that moved to the customer's database, and without deleted ones. */
export const liveAt = (db: Queryable, env: number, places: readonly Omit<MessagePlace, 'env'>[]) =>
  db.query<MessageRow | ColdRow>(
    `SELECT ${columns} FROM unnest($2::bigint[], $3::bigint[]) p(conv, seq)
     CROSS JOIN LATERAL (
       SELECT * FROM messages WHERE env = $1 AND conv = p.conv AND seq = p.seq AND deleted_at IS NULL AND NOT hard LIMIT 1
     ) m ${joined}`,
    [env, ...arraysOf(places, 'conv', 'seq')],
  );

/** The messages below `before` and above `after`, newest first, without hard-deleted ones. */
export const messagesBefore = (
  db: Queryable,
  env: number,
  conversationId: string,
  before: number,
  after: number,
  limit: number,
): Promise<(MessageRow | ColdRow)[]> =>
  db.query<MessageRow | ColdRow>(
    `SELECT ${columns} FROM ${source}
     WHERE m.env = $1 AND m.conv = ${byId} AND m.seq < $3 AND m.seq > $4 AND NOT m.hard ORDER BY m.seq DESC LIMIT $5`,
    [env, conversationId, before, after, limit],
  );

/** The messages above `after`, oldest first. Hard-deleted ones are left out. */
export const messagesAfter = (
  db: Queryable,
  env: number,
  conversationId: string,
  after: number,
  limit: number,
): Promise<(MessageRow | ColdRow)[]> =>
  db.query<MessageRow | ColdRow>(
    `SELECT ${columns} FROM ${source}
     WHERE m.env = $1 AND m.conv = ${byId} AND m.seq > $3 AND NOT m.hard ORDER BY m.seq LIMIT $4`,
    [env, conversationId, after, limit],
  );

/** Those of the messages that exist, in any order, cold ones too. Hard-deleted ones are left out. */
export const messagesOf = (db: Queryable, env: number, conv: number, seqs: readonly number[]) =>
  db.query<MessageRow | ColdRow>(
    `SELECT ${columns} FROM ${source} WHERE m.env = $1 AND m.conv = $2 AND m.seq = ANY($3) AND NOT m.hard`,
    [env, conv, seqs],
  );

/** The next messages after a place, over all conversations up to `upTo`. Hard-deleted ones are included, as stubs. */
export const messagesFrom = (
  db: Queryable,
  env: number,
  after: { conv: number; seq: number },
  upTo: number,
  limit: number,
): Promise<(CopiedRow | Pick<ColdRow, 'id' | 'conv' | 'seq'>)[]> =>
  db.query(
    `SELECT ${copiedColumns} FROM (
       SELECT * FROM messages WHERE env = $1 AND (conv, seq) > ($2::bigint, $3::bigint) AND conv <= $4 ORDER BY conv, seq LIMIT $5
     ) m ${sender} ORDER BY m.conv, m.seq`,
    [env, after.conv, after.seq, upTo, limit],
  );

/**
 * The row of a message that left this store, found by its place. Undefined if the message is here, was hard-deleted,
 * or never existed.
 */
export const coldAt = (db: Queryable, env: number, place: { conversationId: string; seq: number }) =>
  firstRow<ColdRow>(
    db,
    `SELECT ${columns} FROM conversations x JOIN messages m ON m.env = x.env AND m.conv = x.no AND m.seq = $3 ${joined}
     WHERE x.env = $1 AND x.id = $2 AND m.id IS NULL AND NOT m.hard`,
    [env, place.conversationId, place.seq],
  );

/** All messages with after < seq <= upTo, oldest first. Hard-deleted ones are included, as stubs. */
export const messagesBetween = (db: Queryable, env: number, conv: number, after: number, upTo: number) =>
  db.query<MessageRow>(
    `SELECT ${columns} FROM ${source}
     WHERE m.env = $1 AND m.conv = $2 AND m.seq > $3 AND m.seq <= $4 AND m.id IS NOT NULL ORDER BY m.seq`,
    [env, conv, after, upTo],
  );

/**
 * Part of the query that lists conversations `c`: joins the latest live message as `x` and its sender as `xu`. The
 * latest live message of a conversation never moves to the customer's database.
 */
export const latestLive = `LEFT JOIN messages x ON x.env = c.env AND x.conv = c.no AND x.seq = c.last_message_seq AND x.id IS NOT NULL
  LEFT JOIN ${userOf('x.env', 'x.sender')} xu ON true`;

/** How many seqs one query for a user's messages covers: there is no index by sender. */
const lookWidth = 10_000;

/**
 * A user's messages above `after` that are not hard-deleted, cold ones too, at most `limit`. `next` is where to
 * continue, null at the end.
 */
export async function messagesBy(
  db: Queryable,
  env: number,
  conv: number,
  sender: number,
  after: number,
  limit: number,
): Promise<{ seqs: number[]; next: number | null }> {
  const [row] = await db.query<{ seqs: number[] | null; last: number }>(
    `SELECT c.last_seq AS last, ARRAY(
       SELECT m.seq FROM messages m WHERE m.env = $1 AND m.conv = $2 AND m.seq > $4 AND m.seq <= $4 + ${lookWidth}
         AND m.sender = $3 AND NOT m.hard ORDER BY m.seq LIMIT $5) AS seqs
     FROM conversations c WHERE c.env = $1 AND c.no = $2`,
    [env, conv, sender, after, limit],
  );
  if (!row) return { seqs: [], next: null };
  const seqs = row.seqs?.map(Number) ?? [];
  const next = seqs.length === limit ? seqs.at(-1)! : after + lookWidth;
  return { seqs, next: next < row.last ? next : null };
}
