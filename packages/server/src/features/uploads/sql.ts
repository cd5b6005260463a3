import type { Attachment } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow, firstRow, oneValue, valuesOf } from '../../platform/postgres/rows.ts';
import type { Resource } from '../../platform/storage/port.ts';
import { conversationOf } from '../sql/lookups.ts';

export interface AttachmentRow {
  id: string;
  cid: string;
  uploader: number | null;
  name: string;
  size: number;
  contentType: string;
  key: string;
  /** The place of the object (migrations/0028). */
  storage: number | null;
  resource: Resource;
  readyAt: string | null;
  mimeType: string | null;
  width: number | null;
  height: number | null;
  durationMs: number | null;
  waveform: string | null;
}

const columns = `a.id, c.id AS cid, a.uploader, a.name, a.size, a.content_type AS "contentType", a.object_key AS key, a.storage,
  a.resource, a.ready_at AS "readyAt", a.mime_type AS "mimeType", a.width, a.height, a.duration_ms AS "durationMs", a.waveform`;

/** The attachment as callers see it, with the same fields that `take_attachments` puts into a message. */
export const viewReady = (row: AttachmentRow): Attachment => ({
  id: row.id,
  name: row.name,
  size: row.size,
  mimeType: row.mimeType!,
  ...(row.width === null ? {} : { width: row.width }),
  ...(row.height === null ? {} : { height: row.height }),
  ...(row.durationMs === null ? {} : { durationMs: row.durationMs }),
  ...(row.waveform === null ? {} : { waveform: row.waveform }),
  status: 'ready',
});

/** Announces an upload, unless the environment's files would then exceed `room` bytes (null means no bound). */
export const insertUpload = (
  db: Queryable,
  env: number,
  conv: number,
  room: number | null,
  upload: Omit<AttachmentRow, 'cid' | 'readyAt' | 'mimeType'> & { keepSeconds: number },
): Promise<boolean> =>
  anyRow(
    db,
    `WITH counted AS (
       INSERT INTO media_usage AS u (env, bytes) VALUES ($1, $6)
       ON CONFLICT (env) DO UPDATE SET bytes = u.bytes + excluded.bytes
         WHERE $13::bigint IS NULL OR u.bytes + excluded.bytes <= $13::bigint RETURNING 1
     )
     INSERT INTO attachments (env, conv, id, uploader, name, size, content_type, object_key, resource, width, height, created_at, keep_until, storage,
       duration_ms, waveform)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now(), now() + $12 * interval '1 second', $14, $15, $16 FROM counted RETURNING 1`,
    [
      env,
      conv,
      ...valuesOf(upload, 'id', 'uploader', 'name', 'size', 'contentType', 'key', 'resource'),
      ...valuesOf(upload, 'width', 'height', 'keepSeconds'),
      room,
      ...valuesOf(upload, 'storage', 'durationMs', 'waveform'),
    ],
  );

export const findAttachment = (db: Queryable, env: number, id: string): Promise<AttachmentRow | undefined> =>
  firstRow(
    db,
    `SELECT ${columns} FROM attachments a CROSS JOIN ${conversationOf('a.env', 'a.conv')} c WHERE a.env = $1 AND a.id = $2`,
    [env, id],
  );

/** Returns undefined if the upload was deleted meanwhile; one that was completed meanwhile stays unchanged. */
export async function markReady(
  db: Queryable,
  env: number,
  id: string,
  found: { mimeType: string; width: number | null; height: number | null; keepSeconds: number },
): Promise<AttachmentRow | undefined> {
  await db.query(
    `UPDATE attachments SET ready_at = now(), mime_type = $3, width = $4, height = $5, keep_until = now() + $6 * interval '1 second'
     WHERE env = $1 AND id = $2 AND ready_at IS NULL`,
    [env, id, found.mimeType, found.width, found.height, found.keepSeconds],
  );
  return findAttachment(db, env, id);
}

/**
 * Deletes attachments, and queues their objects for removal after the commit. Returns how many.
 * @param first a query for the attachments `f` that the condition compares with.
 */
async function drop(db: Queryable, condition: string, values: unknown[], first?: string): Promise<number> {
  const rows = await db.query(
    `WITH ${first === undefined ? '' : `first AS MATERIALIZED (${first}), `}gone AS (
       DELETE FROM attachments a ${first === undefined ? '' : 'USING first f'} WHERE ${condition}
       RETURNING a.env, a.object_key, a.storage, a.resource, a.size, a.created_at
     ) INSERT INTO object_removals (env, object_key, storage, resource, size, again_at, due_at)
       SELECT env, object_key, storage, resource, size, created_at + interval '1 hour', now() FROM gone RETURNING 1`,
    values,
  );
  return rows.length;
}

/**
 * Deletes the attachments of an environment on some pages of the table. Objects in a customer's own storage (a number
 * above 0) stay there.
 */
export const dropOfEnvironments = (
  db: Queryable,
  envs: number[],
  from: string,
  to: string,
): Promise<number> =>
  oneValue(
    db,
    `WITH gone AS (
       DELETE FROM attachments WHERE env + 0 = ANY($1) AND ctid >= $2::tid AND ctid < $3::tid
       RETURNING env, object_key, storage, resource, size, created_at
     ), queued AS (
       INSERT INTO object_removals (env, object_key, storage, resource, size, again_at, due_at)
       SELECT env, object_key, storage, resource, size, created_at + interval '1 hour', now() FROM gone
       WHERE coalesce(storage, 0) <= 0
     ) SELECT count(*)::int AS n FROM gone`,
    [envs, from, to],
  );

export const dropUpload = (db: Queryable, env: number, id: string): Promise<number> =>
  drop(db, 'env = $1 AND id = $2 AND message IS NULL', [env, id]);

export const dropOfMessages = (db: Queryable, env: number, conv: number, seqs: number[]): Promise<number> =>
  drop(db, 'env = $1 AND conv = $2 AND message = ANY($3)', [env, conv, seqs]);

/** Deletes what a user uploaded and no message holds. Rows are locked in the order in which sends lock them. */
export const dropUnusedOf = (db: Queryable, env: number, user: number): Promise<number> =>
  drop(
    db,
    `env = $1 AND message IS NULL AND id = ANY(ARRAY(
       SELECT id FROM attachments WHERE env = $1 AND uploader = $2 AND message IS NULL ORDER BY id FOR UPDATE))`,
    [env, user],
  );

/** Deletes uploads that were not completed or used in time. */
export const dropExpired = (db: Queryable, limit: number): Promise<number> =>
  drop(
    db,
    'a.env = f.env AND a.id = f.id',
    [limit],
    `SELECT env, id FROM attachments WHERE message IS NULL AND keep_until < now()
       ORDER BY keep_until LIMIT $1 FOR UPDATE SKIP LOCKED`,
  );

export interface Removal extends Pick<AttachmentRow, 'key' | 'storage' | 'resource'> {
  no: number;
  env: number;
  attempts: number;
}

/** Takes removals that are due. One that does not finish becomes due again after a growing delay, at most 6 hours. */
export const claimRemovals = (db: Queryable, limit: number, maxAttempts: number): Promise<Removal[]> =>
  db.query<Removal>(
    `UPDATE object_removals SET attempts = attempts + 1,
       due_at = now() + least(30 * power(2, attempts), 21600) * interval '1 second'
     WHERE no = ANY(ARRAY(SELECT no FROM object_removals WHERE due_at <= now() AND attempts < $2
       ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
     RETURNING no, env, object_key AS key, storage, resource, attempts`,
    [limit, maxAttempts],
  );

/**
 * Ends the removals of objects that were deleted: if the upload ticket has ended, the size is freed; otherwise the
 * object is removed once more after the ticket ends. Rows are locked in order.
 */
export const finishRemovals = (db: Queryable, numbers: number[]) =>
  db.query(
    `WITH later AS (
       UPDATE object_removals SET due_at = again_at, attempts = 0 WHERE no = ANY($1) AND again_at > now()
     ), gone AS (
       DELETE FROM object_removals WHERE no = ANY($1) AND again_at <= now() RETURNING env, size
     ), freed AS (
       SELECT env, sum(size)::bigint AS bytes FROM gone GROUP BY env
     ), held AS (
       SELECT u.env FROM media_usage u JOIN freed f ON f.env = u.env ORDER BY u.env FOR UPDATE OF u
     )
     UPDATE media_usage u SET bytes = u.bytes - f.bytes FROM freed f JOIN held h ON h.env = f.env WHERE u.env = f.env`,
    [numbers],
  );
