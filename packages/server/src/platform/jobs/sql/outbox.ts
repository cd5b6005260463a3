import type { Queryable } from '../../postgres/db.ts';
import { firstRow } from '../../postgres/rows.ts';

/** The rows of the outbox (../outbox.ts). */

export interface OutboxRow {
  no: number;
  /** evt_… */
  id: string;
  env: number;
  type: string;
  conv: number | null;
  seq: number | null;
  /** The seq of the message that the row is about. */
  message: number | null;
  users: number[] | null;
  actor: number | null;
  data: string | null;
  createdAt: string;
}

export interface NewOutboxRow {
  env: number;
  type: string;
  conv?: number;
  seq?: number;
  message?: number;
  users?: number[];
  actor?: number | null;
  data?: unknown;
  sealed?: Buffer;
}

/**
 * Writes a row for a consumer, if it listens, about something that is no event of a conversation.
 * @param always the consumer listens to every environment.
 */
export async function emit(
  tx: Queryable,
  consumer: number,
  row: NewOutboxRow,
  always = false,
): Promise<void> {
  await tx.query(
    `INSERT INTO outbox (consumer, id, env, type, conv, seq, message, users, actor, data, sealed, created_at, due_at)
     SELECT $10::int, make_id('evt_', t), $1, $2, $3, $4, $5, $6, $7, $8, $9, t, t
     FROM environments, (SELECT clock_timestamp() AS t) x WHERE no = $1 AND ($11 OR listeners & $10::int <> 0)`,
    [
      row.env,
      row.type,
      row.conv ?? null,
      row.seq ?? null,
      row.message ?? null,
      row.users ?? null,
      row.actor ?? null,
      row.data === undefined ? null : JSON.stringify(row.data),
      row.sealed ?? null,
      consumer,
      always,
    ],
  );
}

/** A row that its consumer cannot take is tried again at this interval, for this long. */
const retryMinutes = 1;
const giveUpHours = 72;

/** A row with a key absorbs later changes until it is due; this takes the keys of due rows away. */
export async function releaseKeys(db: Queryable, consumer: number, limit: number): Promise<void> {
  await db.query(
    `UPDATE outbox SET key = NULL WHERE no = ANY(ARRAY(
         SELECT no FROM outbox WHERE consumer = $2 AND due_at <= clock_timestamp() AND key IS NOT NULL
         ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    [limit, consumer],
  );
}

export const lockDue = (tx: Queryable, consumer: number, limit: number): Promise<OutboxRow[]> =>
  tx.query<OutboxRow>(
    `SELECT no, id, env, type, conv, seq, message, users, actor, data, created_at AS "createdAt" FROM outbox
           WHERE consumer = $2 AND due_at <= clock_timestamp() AND key IS NULL ORDER BY due_at, no LIMIT $1
           FOR UPDATE SKIP LOCKED`,
    [limit, consumer],
  );

export async function removeRows(tx: Queryable, numbers: readonly number[]): Promise<void> {
  await tx.query('DELETE FROM outbox WHERE no = ANY($1)', [numbers]);
}

/** Puts a row off or, after days, gives it up; returns it then. */
export const putOff = (db: Queryable, no: number): Promise<{ id: string; type: string } | undefined> =>
  firstRow(
    db,
    `WITH later AS (
         UPDATE outbox SET due_at = clock_timestamp() + interval '${retryMinutes} minutes'
         WHERE no = $1 AND created_at > now() - interval '${giveUpHours} hours'
       ) DELETE FROM outbox WHERE no = $1 AND created_at <= now() - interval '${giveUpHours} hours' RETURNING id, type`,
    [no],
  );

/** Milliseconds until the consumer has a row that is due, at most `most`. */
export async function untilDue(db: Queryable, bit: number, most: number): Promise<number> {
  const [row] = await db.query<{ ms: number }>(
    `SELECT (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS ms FROM outbox
     WHERE consumer = $2 AND due_at < clock_timestamp() + $1 * interval '1 millisecond' ORDER BY due_at LIMIT 1`,
    [most, bit],
  );
  return row?.ms ?? most;
}
