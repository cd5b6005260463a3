import type { Logger } from '../logging.ts';
import type { Db, Queryable, Tx } from '../postgres/db.ts';
import { createLoop } from './loop.ts';
import type { Loop } from './loop.ts';

/**
 * The outbox: what was committed and must still be told to somebody (migrations/0002). Messages and events of the log are noted
 * by the statements that commit them; everything else comes through `emit`. The dispatcher hands each row to every
 * consumer in one transaction, which also removes it: whatever a consumer writes there happens exactly once.
 */

/** Bits of environments.listeners. */
export const listeners = { webhooks: 1, push: 2, webhookReads: 4 } as const;

export interface OutboxRow {
  no: number;
  /** evt_… */
  id: string;
  env: number;
  type: string;
  conv: number | null;
  seq: number | null;
  /** seq of the message it is about. */
  message: number | null;
  users: number[] | null;
  actor: number | null;
  data: string | null;
  createdAt: string;
}

export type Consumer = (tx: Tx, rows: readonly OutboxRow[]) => Promise<void>;

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

/** Notes an event outside the log, in the transaction of its cause, where webhooks are listened to. */
export async function emit(tx: Queryable, row: NewOutboxRow): Promise<void> {
  await tx.query(
    `INSERT INTO outbox (id, env, type, conv, seq, message, users, actor, data, sealed, created_at, due_at)
     SELECT make_id('evt_', t), $1, $2, $3, $4, $5, $6, $7, $8, $9, t, t
     FROM environments, (SELECT clock_timestamp() AS t) x WHERE no = $1 AND listeners & ${listeners.webhooks} <> 0`,
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
    ],
  );
}

const batchSize = 500;
const pauseMs = 5;

export function createDispatcher(options: {
  db: Db;
  logger: Logger;
  consumers: readonly Consumer[];
  /** After a commit: the consumers' workers have something to do. */
  dispatched: () => void;
  pollMs?: number;
}): Loop {
  const { db, logger, consumers, pollMs = 1_000 } = options;
  /** After a failure rows go one by one, this many times, so that a bad one is put off alone. */
  let alone = 0;

  async function dispatch(limit: number): Promise<number> {
    let taken: number[] = [];
    try {
      await db.tx(async (tx) => {
        const rows = await tx.query<OutboxRow>(
          `SELECT no, id, env, type, conv, seq, message, users, actor, data, created_at AS "createdAt" FROM outbox
           WHERE due_at <= clock_timestamp() ORDER BY due_at, no LIMIT $1 FOR UPDATE SKIP LOCKED`,
          [limit],
        );
        taken = rows.map((r) => r.no);
        if (rows.length === 0) return;
        for (const consume of consumers) await consume(tx, rows);
        await tx.query('DELETE FROM outbox WHERE no = ANY($1)', [taken]);
      });
    } catch (error) {
      if (taken.length === 0 || (error as { code?: string }).code === 'service_unavailable') throw error;
      logger.error({ err: error, rows: taken.length }, 'the outbox could not be handed out');
      if (limit > 1) alone = taken.length;
      else
        await db.query(
          `UPDATE outbox SET due_at = clock_timestamp() + interval '1 minute' WHERE no = ANY($1)`,
          [taken],
        );
      return 0;
    }
    return taken.length;
  }

  return createLoop(logger, 'outbox', pollMs, async () => {
    const wait = await untilDue(db, pollMs);
    if (wait > 0) return wait;
    const count = await dispatch(alone > 0 ? 1 : batchSize);
    alone = Math.max(0, alone - count);
    if (count === 0) return pauseMs;
    options.dispatched();
    return 0;
  });
}

async function untilDue(db: Queryable, most: number): Promise<number> {
  const [row] = await db.query<{ ms: number }>(
    `SELECT (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS ms FROM outbox
     WHERE due_at < clock_timestamp() + $1 * interval '1 millisecond' ORDER BY due_at LIMIT 1`,
    [most],
  );
  return row?.ms ?? most;
}
