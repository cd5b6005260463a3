import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startService } from '../../src/compose.ts';
import type { ServiceOptions } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { pooledRandom, systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { openStore } from '../../src/platform/postgres/store.ts';
import { startPostgres } from '../support/postgres.ts';
import { environments } from '../support/service.ts';

/** The whole service in the test's own process, so that its clock can be moved and what it is given can be changed. */
export interface Here {
  url: string;
  /** The service's time, in milliseconds. */
  now(): number;
  /** Time passes for the service; its timers see it within a second. */
  advance(ms: number): void;
  /** Its wall clock is set ahead, or back; no time passes. */
  setClock(ms: number): void;
  /** Straight into the store, as another node would. */
  sql(text: string, values?: unknown[]): Promise<void>;
  stop(): Promise<void>;
  dispose(): Promise<void>;
}

/** Sockets that a test left open are not waited for at the end, unless `drainMs` says so. */
export async function startHere(
  changes: Pick<ServiceOptions, 'drainMs' | 'plans' | 'peers'> = {},
): Promise<Here> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  pool.on('error', () => undefined);
  const { config } = readConfig({
    PORT: '0',
    CHAT_DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
    CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(Object.values(environments)),
    CHAT_BOOTSTRAP_EMAIL: 'owner@example.com',
    CHAT_BOOTSTRAP_PASSWORD: 'correct horse',
  });
  const logger = createLogger('error');
  const store = await openStore(config, logger);
  let passed = 0;
  let set = 0;
  const now = (): number => systemClock.now() + passed + set;
  const service = await startService({
    ...{ config, store, logger },
    clock: { now, monotonic: () => systemClock.monotonic() + passed },
    random: Math.random,
    randomBytes: pooledRandom(),
    drainMs: 0,
    ...changes,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= service.stop());
  return {
    url: `http://127.0.0.1:${service.port}`,
    now,
    advance: (ms) => void (passed += ms),
    setClock: (ms) => void (set += ms),
    sql: async (text, values) => void (await pool.query(text, values)),
    stop,
    async dispose() {
      await stop();
      await pool.end();
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
