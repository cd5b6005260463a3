import pg from 'pg';
import type { Logger } from '../logging.ts';
import type { ConnectionSettings, Queryable } from '../postgres/db.ts';

/**
 * Wakes the processes that dispatch and deliver, after a commit. It carries no data and may be lost: they also look on
 * their own every second. It is not part of the commit, because NOTIFY inside one makes all such commits wait for each other.
 */

const channel = 'parley_work';
const gatherMs = 10;

/** Runs `fn` at most once per `ms`; the last call is always followed by a run. */
export function gathered(ms: number, fn: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      fn();
    }, ms).unref();
  };
}

export const createNotifier = (db: Queryable, logger: Logger): (() => void) =>
  gathered(gatherMs, () => {
    db.query(`SELECT pg_notify('${channel}', '')`).catch((error: unknown) =>
      logger.debug({ err: error }, 'a wake-up was lost'),
    );
  });

const reconnectMs = 1_000;

export interface Listener {
  start(): void;
  stop(): Promise<void>;
}

export function createListener(connection: ConnectionSettings, logger: Logger, onWake: () => void): Listener {
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function connect(): Promise<void> {
    const next = new pg.Client({ ...connection, keepAlive: true, application_name: 'parley listen' });
    let lost = false;
    const again = (error?: Error): void => {
      if (lost || stopped) return;
      lost = true;
      if (error) logger.debug({ err: error }, 'the wake-up connection was lost');
      next.end().catch(() => undefined);
      timer = setTimeout(() => void connect(), reconnectMs).unref();
    };
    next.on('error', again);
    next.on('end', () => again());
    next.on('notification', onWake);
    client = next;
    try {
      await next.connect();
      await next.query(`LISTEN ${channel}`);
      onWake();
    } catch (error) {
      again(error as Error);
    }
  }

  return {
    start: () => void connect(),
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
