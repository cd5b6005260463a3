import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Service } from './compose.ts';
import type { Config } from './config.ts';
import type { Logger } from './platform/logging.ts';
import { outsideConnection } from './platform/postgres/outside.ts';
import { openStore } from './platform/postgres/store.ts';
import type { Store } from './platform/postgres/store.ts';
import type { Signals } from './signals.ts';

/**
 * With CHAT_PROCESSES above 1, this process runs the store and its workers, which share the port. A worker that ends
 * is replaced after a second; if a worker cannot start at all, the service ends.
 */

const storeVariable = 'PARLEY_STORE';
const indexVariable = 'PARLEY_WORKER';
const replaceMs = 1_000;

export type Started = Pick<Service, 'port' | 'first' | 'open'>;

/** The index of this worker. Each worker has its own metrics port, counted up from the setting. */
export const workerIndex = (): number => Number(process.env[indexVariable] ?? 0);

/** In a worker: the store that the primary runs, or the one of DATABASE_URL. */
export function inheritedStore(databaseUrl: string | undefined): Store | null {
  const connection = process.env[storeVariable];
  if (!cluster.isWorker || connection === undefined) return null;
  // Without its primary a worker has no store, so it must not outlive it.
  process.on('disconnect', () => process.exit(1));
  return {
    connection:
      databaseUrl === undefined
        ? (JSON.parse(connection) as Store['connection'])
        : outsideConnection(databaseUrl, process.env).connection,
    stop: () => Promise.resolve(),
  };
}

export async function runPrimary(
  config: Config,
  logger: Logger,
  { stop, attach }: Signals,
  announce: (started: Started) => void,
): Promise<void> {
  const store = await openStore(config, logger);
  const workers = (): Worker[] => Object.values(cluster.workers ?? {}).flatMap((worker) => worker ?? []);
  attach({
    end: () => {
      logger.level = 'silent';
      stopping = true;
      for (const worker of workers()) worker.process.kill('SIGKILL');
      return store.stop();
    },
  });
  let stopping = false;
  const fork = (index: number): Worker => {
    const worker = cluster.fork({
      [storeVariable]: config.databaseUrl === undefined ? JSON.stringify(store.connection) : '',
      [indexVariable]: String(index),
    });
    worker.once('exit', (code: number, signal: string) => {
      if (stopping) return;
      logger.error({ worker: index, code, signal }, 'a worker ended; starting another');
      setTimeout(() => {
        if (!stopping) fork(index);
      }, replaceMs);
    });
    return worker;
  };

  try {
    // Workers start one after the other: the first prepares the store and reports what it created.
    const started: Started[] = [];
    for (let i = 0; i < config.processes; i++) {
      const next = await firstStart(fork(i), stop);
      if (!next) break;
      started.push(next);
    }
    const first = started.map((s) => s.first).find((f) => f !== null) ?? null;
    if (started.length === config.processes) announce({ ...started[0]!, first });
    await stop;
    logger.info('stopping');
  } finally {
    stopping = true;
    await Promise.all(workers().map(end));
    await store.stop();
  }
}

/** Returns null if the service is stopped before the worker has started. */
async function firstStart(worker: Worker, stop: Promise<void>): Promise<Started | null> {
  const gone = new AbortController();
  try {
    return await Promise.race([
      once(worker, 'message', { signal: gone.signal }).then(([message]) => message as Started),
      once(worker, 'exit', { signal: gone.signal }).then(() => {
        throw new Error('a worker could not start');
      }),
      stop.then(() => null),
    ]);
  } finally {
    gone.abort();
  }
}

async function end(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const exited = once(worker, 'exit');
  worker.process.kill('SIGTERM');
  await exited;
}
