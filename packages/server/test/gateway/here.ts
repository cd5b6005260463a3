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
import { keepNoConnections } from '../support/api.ts';
import { startPostgres } from '../support/postgres.ts';
import { environments } from '../support/service.ts';
import { StandingTime } from '../support/time.ts';
import { use } from '../support/use.ts';

/** The whole service in the test's own process, so that its clock can be moved and what it is given can be changed. */
export interface Here {
  url: string;
  databaseUrl: string;
  /** Straight into the store, as another node would. */
  sql(text: string, values?: unknown[]): Promise<void>;
  stop(): Promise<void>;
  dispose(): Promise<void>;
}

/** Sockets that a test left open are not waited for at the end, unless `drainMs` says so. */
export async function startHere({
  env = {},
  ...changes
}: Partial<Pick<ServiceOptions, 'clock' | 'timers' | 'drainMs' | 'plans' | 'peers'>> & {
  /** Settings; a function where they depend on something that is started first. */
  env?: Record<string, string> | (() => Record<string, string>);
} = {}): Promise<Here> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  pool.on('error', () => undefined);
  const { config } = readConfig({
    PORT: '0',
    CHAT_DATA_DIR: dataDir,
    CHAT_ROLES: 'api,gateway,worker',
    DATABASE_URL: databaseUrl,
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
    CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(Object.values(environments)),
    CHAT_BOOTSTRAP_EMAIL: 'owner@example.com',
    CHAT_BOOTSTRAP_PASSWORD: 'correct horse',
    ...(typeof env === 'function' ? env() : env),
  });
  const logger = createLogger('error');
  const store = await openStore(config, logger);
  const service = await startService({
    config,
    store,
    logger,
    clock: systemClock,
    random: Math.random,
    randomBytes: pooledRandom(),
    drainMs: 0,
    ...changes,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= service.stop());
  return {
    url: `http://127.0.0.1:${service.port}`,
    databaseUrl,
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

/**
 * The service for all tests of the file, in a time that stands still until a test moves it: what it allows in a while, and
 * what it does after a while, do not depend on how fast the machine is.
 */
export function useStandingHere(changes: Parameters<typeof startHere>[0] = {}): {
  here: Here;
  time: StandingTime;
} {
  keepNoConnections();
  const time = new StandingTime();
  const here = use(
    () => startHere({ clock: time, timers: time.timers, ...changes }),
    async (started) => {
      // It may wait for its sockets to leave.
      const disposed = started.dispose();
      const passing = setInterval(() => time.advance(1_000), 10);
      await disposed.finally(() => clearInterval(passing));
    },
  );
  return { here, time };
}
