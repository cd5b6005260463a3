import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { run as runGraphile, makeWorkerUtils, Logger } from 'graphile-worker';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { enqueue } from '../../../packages/server/src/platform/jobs/sql/jobs.ts';
import { createWorker } from '../../../packages/server/src/platform/jobs/worker.ts';
import { createLogger } from '../../../packages/server/src/platform/logging.ts';
import { PgDb } from '../../../packages/server/src/platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../../../packages/server/src/platform/postgres/embedded/index.ts';
import { migrate } from '../../../packages/server/src/platform/postgres/migrate.ts';

/**
 * node bench/src/jobs/main.ts: our jobs beside graphile-worker and pg-boss, as the webhooks use them. Each has 100 slots.
 *   drain      10,000 jobs of 50 keys that do nothing
 *   49 + dead  49 keys of 100 jobs of 5 ms each; then the same beside a key with 200 jobs that hang 10 s
 */

type Handler = (key: number) => Promise<void>;
interface Contestant {
  name: string;
  enqueue(keys: number[]): Promise<void>;
  /** Runs what is queued until stopped. */
  work(handler: Handler): Promise<() => Promise<void>>;
}

const slots = 100;
const directory = await mkdtemp(join(tmpdir(), 'parley-jobs-'));
const postgres = await startEmbeddedPostgres({ dataDir: directory, log: () => undefined });
const db = new PgDb(postgres.connection, { max: 4, onError: () => undefined });
await migrate(postgres.connection);

async function ours(): Promise<Contestant> {
  const queue = { name: 'bench', width: 10 };
  return {
    name: 'ours (lanes of 10)',
    enqueue: (keys) =>
      enqueue(
        db,
        queue,
        keys.map((key) => ({ key })),
      ),
    work: (handler) => {
      const worker = createWorker({
        db,
        logger: createLogger('warn'),
        queue: queue.name,
        slots,
        leaseMs: 20_000,
        graceMs: 0,
        run: (jobs) => Promise.resolve(jobs.map(async ({ key }) => (await handler(key), { runAt: null }))),
      });
      worker.start();
      return Promise.resolve(() => worker.stop());
    },
  };
}

async function graphile(serial: boolean): Promise<Contestant> {
  const pool = new pg.Pool({ ...postgres.connection, max: 12 });
  const utils = await makeWorkerUtils({ pgPool: pool });
  await utils.migrate();
  return {
    name: `graphile-worker (${serial ? 'a queue per key' : 'no queues'})`,
    enqueue: async (keys) => {
      await utils.addJobs(
        keys.map((key) => ({
          identifier: 'job',
          payload: { key },
          ...(serial ? { queueName: `k${key}` } : {}),
        })),
      );
    },
    work: async (handler) => {
      const runner = await runGraphile({
        pgPool: pool,
        taskList: { job: (payload) => handler((payload as { key: number }).key) },
        noHandleSignals: true,
        logger: new Logger(() => () => undefined),
        preset: {
          worker: {
            concurrentJobs: slots,
            gracefulShutdownAbortTimeout: 100,
            ...(serial
              ? {}
              : { localQueue: { size: slots * 2 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
          },
        },
      });
      return async () => {
        void runner.stop().catch(() => undefined);
        await delay(500);
        await pool.query('TRUNCATE graphile_worker._private_jobs, graphile_worker._private_job_queues');
      };
    },
  };
}

async function boss(grouped: boolean): Promise<Contestant> {
  const connection = new PgBoss({ ...postgres.connection, max: 12, supervise: false, schedule: false });
  connection.on('error', () => undefined);
  await connection.start();
  let queues = 0;
  let queue = '';
  const next = async () => {
    queue = `bench${grouped ? 'g' : ''}${++queues}`;
    await connection.createQueue(queue);
  };
  await next();
  return {
    name: `pg-boss (${grouped ? 'groups of 10' : 'batches of 100'})`,
    enqueue: async (keys) => {
      await connection.insert(
        queue,
        keys.map((key) => ({ data: { key }, ...(grouped ? { group: { id: `k${key}` } } : {}) })),
      );
    },
    work: async (handler) => {
      const options = grouped
        ? { localConcurrency: slots, batchSize: 1, groupConcurrency: 10 }
        : { localConcurrency: 1, batchSize: slots };
      const working = queue;
      await connection.work<{ key: number }>(
        working,
        { ...options, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
        async (jobs) => {
          await Promise.all(jobs.map((job) => handler(job.data.key)));
        },
      );
      return async () => {
        void connection.offWork(working).catch(() => undefined);
        await next();
      };
    },
  };
}

async function timed(
  contestant: Contestant,
  keys: number[],
  handler: Handler,
  wanted: number,
): Promise<number> {
  for (let i = 0; i < keys.length; i += 500) await contestant.enqueue(keys.slice(i, i + 500));
  let done = 0;
  let finished!: () => void;
  const end = new Promise<void>((resolve) => (finished = resolve));
  const begin = performance.now();
  const stop = await contestant.work(async (key) => {
    await handler(key);
    if (key > 0 && ++done === wanted) finished();
  });
  await Promise.race([end, delay(60_000)]);
  const ms = performance.now() - begin;
  await stop();
  return done >= wanted ? ms : Infinity;
}

const spread = (count: number, keys: number) => Array.from({ length: count }, (_, i) => 1 + (i % keys));
const seconds = (ms: number) => (ms === Infinity ? 'over 60' : (ms / 1000).toFixed(2));
const hang = new AbortController();

process.stdout.write(
  `${'s'.padEnd(36)}${'drain'.padStart(10)}${'49'.padStart(10)}${'49 + dead'.padStart(12)}\n`,
);
for (const make of [() => graphile(false), () => graphile(true), () => boss(false), () => boss(true), ours]) {
  const contestant = await make();
  const drain = await timed(contestant, spread(10_000, 50), () => Promise.resolve(), 10_000);
  const work: Handler = (key) =>
    key > 0 ? delay(5) : delay(10_000, undefined, { signal: hang.signal }).catch(() => undefined);
  const alone = await timed(contestant, spread(4_900, 49), work, 4_900);
  const beside = await timed(contestant, [...Array<number>(200).fill(0), ...spread(4_900, 49)], work, 4_900);
  process.stdout.write(
    `${contestant.name.padEnd(36)}${seconds(drain).padStart(10)}${seconds(alone).padStart(10)}${seconds(beside).padStart(12)}\n`,
  );
}
hang.abort();
await db.close();
await postgres.stop();
await rm(directory, { recursive: true, force: true });
process.exit(0);
