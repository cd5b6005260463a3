import type { Logger } from '../logging.ts';
import type { Db, Queryable, Tx } from '../postgres/db.ts';
import { createPeriodic } from '../flow/periodic.ts';
import type { Periodic } from '../flow/periodic.ts';
import type { WorkSignal } from './wake.ts';

/**
 * The outbox holds what was committed and must still be passed on (migrations/0002, 0012). It is one queue per
 * consumer: each one that listens gets its own row, written by the statement that commits the cause. A consumer takes
 * its rows in one transaction that also removes them. So what it writes there happens exactly once, and a consumer
 * that fails or is slow holds up no other.
 */

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

export interface Consumer {
  name: string;
  /** The consumer's bit of environments.listeners, which is also the `consumer` of its rows. */
  bit: number;
  /** Connections of its own, so that a consumer that hangs does not hold those of others. */
  db: Db;
  take(tx: Tx, rows: readonly OutboxRow[]): Promise<void>;
  /** Called after the commit: its workers have something to do. */
  taken?: () => void;
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

/** Writes a row for a consumer, if it listens, about something that is no event of a conversation. */
export async function emit(tx: Queryable, consumer: number, row: NewOutboxRow): Promise<void> {
  await tx.query(
    `INSERT INTO outbox (consumer, id, env, type, conv, seq, message, users, actor, data, sealed, created_at, due_at)
     SELECT $10::int, make_id('evt_', t), $1, $2, $3, $4, $5, $6, $7, $8, $9, t, t
     FROM environments, (SELECT clock_timestamp() AS t) x WHERE no = $1 AND listeners & $10::int <> 0`,
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
    ],
  );
}

export interface Outbox {
  /** Starts handing rows out, in processes with the role worker, once the store is ready. */
  start(): void;
  stop(): Promise<void>;
}

const subject = 'outbox';

/** Must be called after a commit that may have left rows here. */
export const wakeOutbox = (work: WorkSignal): void => work.raise(subject);

export function createOutbox(options: {
  consumers: readonly Consumer[];
  work: WorkSignal;
  logger: Logger;
  pollMs?: number;
}): Outbox {
  const { work, logger, pollMs = 1_000 } = options;
  const loops = options.consumers.map((consumer) => consumerLoop(consumer, logger, pollMs));
  for (const loop of loops) work.on(subject, () => loop.wake());
  return {
    start: () => {
      for (const loop of loops) loop.start();
    },
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

const batchSize = 500;
const pauseMs = 5;
/** A row that its consumer cannot take is tried again at this interval, for this long. */
const retryMinutes = 1;
const giveUpHours = 72;

function consumerLoop({ name, bit, db, take, taken }: Consumer, logger: Logger, pollMs: number): Periodic {
  /** How many rows are still taken one by one after a failure, so that a bad row is put off alone. */
  let alone = 0;

  async function handOut(limit: number): Promise<number> {
    let numbers: number[] = [];
    // A row with a key absorbs later changes until it is due. The key is released in a statement of its own, so that
    // a transaction that records the next change does not wait until this row is handed out.
    await db.query(
      `UPDATE outbox SET key = NULL WHERE no = ANY(ARRAY(
         SELECT no FROM outbox WHERE consumer = $2 AND due_at <= clock_timestamp() AND key IS NOT NULL
         ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
      [limit, bit],
    );
    try {
      await db.tx(async (tx) => {
        const rows = await tx.query<OutboxRow>(
          `SELECT no, id, env, type, conv, seq, message, users, actor, data, created_at AS "createdAt" FROM outbox
           WHERE consumer = $2 AND due_at <= clock_timestamp() AND key IS NULL ORDER BY due_at, no LIMIT $1
           FOR UPDATE SKIP LOCKED`,
          [limit, bit],
        );
        numbers = rows.map((r) => r.no);
        if (rows.length === 0) return;
        await take(tx, rows);
        await tx.query('DELETE FROM outbox WHERE no = ANY($1)', [numbers]);
      });
    } catch (error) {
      if (numbers.length === 0 || (error as { code?: string }).code === 'service_unavailable') throw error;
      logger.error(
        { err: error, consumer: name, rows: numbers.length },
        'the outbox could not be handed out',
      );
      if (limit > 1) alone = numbers.length;
      else await putOff(numbers[0]!);
      return 0;
    }
    return numbers.length;
  }

  async function putOff(no: number): Promise<void> {
    const [lost] = await db.query<{ id: string; type: string }>(
      `WITH later AS (
         UPDATE outbox SET due_at = clock_timestamp() + interval '${retryMinutes} minutes'
         WHERE no = $1 AND created_at > now() - interval '${giveUpHours} hours'
       ) DELETE FROM outbox WHERE no = $1 AND created_at <= now() - interval '${giveUpHours} hours' RETURNING id, type`,
      [no],
    );
    if (lost) logger.error({ ...lost, consumer: name }, 'an event was given up: its consumer cannot take it');
  }

  return createPeriodic(pollMs, logger, `outbox of ${name}`, async () => {
    const wait = await untilDue(db, bit, pollMs);
    if (wait > 0) return wait;
    const count = await handOut(alone > 0 ? 1 : batchSize);
    alone = Math.max(0, alone - count);
    if (count === 0) return pauseMs;
    taken?.();
    return 0;
  });
}

async function untilDue(db: Queryable, bit: number, most: number): Promise<number> {
  const [row] = await db.query<{ ms: number }>(
    `SELECT (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS ms FROM outbox
     WHERE consumer = $2 AND due_at < clock_timestamp() + $1 * interval '1 millisecond' ORDER BY due_at LIMIT 1`,
    [most, bit],
  );
  return row?.ms ?? most;
}
