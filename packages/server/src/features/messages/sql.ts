import type { MessageVersion } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { oneValue } from '../../platform/postgres/rows.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { countDeletions } from '../../log/unread/sql/deletions.ts';
import { dropMentions } from '../../log/unread/sql/mentions.ts';

export async function editMessage(
  db: Queryable,
  env: number,
  row: MessageRow,
  { at, ...fields }: Pick<MessageRow, 'text' | 'metadata' | 'extras' | 'mentions'> & { at: string },
): Promise<MessageRow> {
  await db.query(
    `UPDATE messages SET text = $4, metadata = $5, extras = $6, version = version + 1, edited_at = $7
     WHERE env = $1 AND conv = $2 AND seq = $3`,
    [env, row.conv, row.seq, fields.text, fields.metadata, fields.extras, at],
  );
  return { ...row, ...fields, version: row.version + 1, editedAt: at };
}

/** Whether a moment is in the future, by the store's clock. */
export const isFuture = (db: Queryable, moment: string): Promise<boolean> =>
  oneValue(db, 'SELECT $1::timestamptz > clock_timestamp() AS later', [moment]);

/** Replaces what a message has beside its content, in a locked conversation; it gets no new version. */
export async function setExtras(
  db: Queryable,
  env: number,
  { conv, seq }: Pick<MessageRow, 'conv' | 'seq'>,
  extras: string | null,
): Promise<void> {
  await db.query('UPDATE messages SET extras = $4 WHERE env = $1 AND conv = $2 AND seq = $3', [
    env,
    conv,
    seq,
    extras,
  ]);
}

/**
 * Empties messages of one conversation, whose row is locked, and keeps every count exact. A message that is a tombstone
 * already only becomes hard-deleted.
 * @returns the messages that were not tombstones already.
 */
export async function emptyMessages(
  db: Queryable,
  env: number,
  conv: number,
  seqs: number[],
  hard: boolean,
  at: string,
): Promise<number[]> {
  const live = await db.query<{ seq: number; sender: number | null; extras: string | null }>(
    `WITH target AS (
       SELECT seq, sender, deleted_at, extras FROM messages WHERE env = $1 AND conv = $2 AND seq = ANY($3)
     ), emptied AS (
       UPDATE messages SET text = NULL, metadata = NULL, attachments = NULL, reply_to = NULL, extras = NULL,
         deleted_at = coalesce(deleted_at, $5::timestamptz), hard = $4
       WHERE env = $1 AND conv = $2 AND seq = ANY($3)
     ) SELECT seq, sender, extras FROM target WHERE deleted_at IS NULL`,
    [env, conv, seqs, hard, at],
  );
  if (live.length === 0) return [];
  await countDeletions(db, env, conv, live);
  const extended = live.flatMap(({ seq, extras }) => (extras === null ? [] : [{ seq, extras }]));
  if (extended.length > 0) await dropMentions(db, env, conv, extended);
  return live.map((l) => l.seq);
}

/** The seq of the event that tells of the deletion; the message itself if that event has expired. */
export async function deletionSeq(tx: Queryable, env: number, row: MessageRow): Promise<number> {
  const [event] = await tx.query<{ seq: number }>(
    `SELECT seq FROM events WHERE env = $1 AND conv = $2 AND message = $3 AND type = 'message.deleted' ORDER BY seq DESC LIMIT 1`,
    [env, row.conv, row.seq],
  );
  return event?.seq ?? row.seq;
}

type MessageChange = Pick<MessageVersion, 'type' | 'seq' | 'at' | 'actorId'>;

/** How many events after the message are searched, and how many changes are returned. */
const looked = 20_000;
const mostChanges = 200;

export const changesOf = (db: Queryable, env: number, { conv, seq }: MessageRow): Promise<MessageChange[]> =>
  db.query<MessageChange>(
    `SELECT CASE e.type WHEN 'message.updated' THEN 'edited' ELSE 'deleted' END AS type, e.seq, e.created_at AS at, u.id AS "actorId"
     FROM (SELECT * FROM events WHERE env = $1 AND conv = $2 AND seq > $3 ORDER BY seq LIMIT ${looked}) e
     LEFT JOIN users u ON u.env = $1 AND u.no = e.actor
     WHERE e.message = $3 AND e.type IN ('message.updated', 'message.deleted') ORDER BY e.seq LIMIT ${mostChanges}`,
    [env, conv, seq],
  );

/** Texts by version, taken from webhook payloads. */
export async function textsOf(
  db: Queryable,
  env: number,
  { conv, seq }: MessageRow,
): Promise<Map<number, string | null>> {
  const rows = await db.query<{ data: string }>(
    `SELECT data FROM webhook_payloads WHERE env = $1 AND conv = $2 AND message = $3 AND data IS NOT NULL LIMIT ${mostChanges}`,
    [env, conv, seq],
  );
  const texts = new Map<number, string | null>();
  for (const { data } of rows) {
    const { message } = JSON.parse(data) as { message?: { version?: number; text?: string | null } };
    if (message?.version !== undefined) texts.set(message.version, message.text ?? null);
  }
  return texts;
}
