import type { Logger } from '../logging.ts';
import type { Db, Tx } from '../postgres/db.ts';
import { createPeriodic } from '../flow/periodic.ts';
import type { Periodic } from '../flow/periodic.ts';
import type { WorkSignal } from './wake.ts';
import * as sql from './sql/outbox.ts';
import type { OutboxRow } from './sql/outbox.ts';

/**
 * The outbox holds what was committed and must still be passed on (migrations/0002, 0012). It is one queue per
 * consumer: each one that listens gets its own row, written by the statement that commits the cause. A consumer takes
 * its rows in one transaction that also removes them. So what it writes there happens exactly once, and a consumer
 * that fails or is slow holds up no other.
 */

export interface Consumer {
  name: string;
  /** The consumer's bit of environments.listeners, which is also the `consumer` of its rows. */
  bit: number;
  /** Separate connections, so that a consumer that hangs does not hold those of others. */
  db: Db;
  take(tx: Tx, rows: readonly OutboxRow[]): Promise<void>;
  /** Called after the commit: its workers have something to do. */
  taken?: () => void;
}

const subject = 'outbox';

/** Must be called after a commit that may have left rows here. */
export const wakeOutbox = (work: WorkSignal): void => work.raise(subject);

export function createOutbox(options: {
  consumers: readonly Consumer[];
  work: WorkSignal;
  logger: Logger;
  pollMs?: number;
}) {
  const { work, logger, pollMs = 1_000 } = options;
  const loops = options.consumers.map((consumer) => consumerLoop(consumer, logger, pollMs));
  for (const loop of loops) work.on(subject, () => loop.wake());
  return {
    /** Starts handing rows out, in processes with the role worker, once the store is ready. */
    start: (): void => {
      for (const loop of loops) loop.start();
    },
    stop: async (): Promise<void> => {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

const batchSize = 500;
const pauseMs = 5;
function consumerLoop({ name, bit, db, take, taken }: Consumer, logger: Logger, pollMs: number): Periodic {
  /** How many rows are still taken one by one after a failure, so that a bad row is put off alone. */
  let alone = 0;

  async function handOut(limit: number): Promise<number> {
    let numbers: number[] = [];
    // A row with a key absorbs later changes until it is due. A separate statement releases the key, so that
    // a transaction that records the next change does not wait until this row is handed out.
    await sql.releaseKeys(db, bit, limit);
    try {
      await db.tx(async (tx) => {
        const rows = await sql.lockDue(tx, bit, limit);
        numbers = rows.map((r) => r.no);
        if (rows.length === 0) return;
        await take(tx, rows);
        await sql.removeRows(tx, numbers);
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
    const lost = await sql.putOff(db, no);
    if (lost) logger.error({ ...lost, consumer: name }, 'an event was given up: its consumer cannot take it');
  }

  return createPeriodic(pollMs, logger, `outbox of ${name}`, async () => {
    const wait = await sql.untilDue(db, bit, pollMs);
    if (wait > 0) return wait;
    const count = await handOut(alone > 0 ? 1 : batchSize);
    alone = Math.max(0, alone - count);
    if (count === 0) return pauseMs;
    taken?.();
    return 0;
  });
}
