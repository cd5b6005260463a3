/**
 * The PostgreSQL server that runs if no DATABASE_URL is set: binaries from npm, data in `<dataDir>/postgres`, no TCP
 * port. It ends with this process, however this process ends. It does not get the signals sent to our process group,
 * so it serves while we drain.
 */
import { mkdir, realpath, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { locateBinaries } from './binaries.ts';
import { ensureCluster, PORT, prepareSocketDirectory, socketDirectory, SUPERUSER } from './cluster.ts';
import { lockFile } from './lock.ts';
import { clearOrphan, SHUTDOWN_STEPS } from './orphan.ts';
import { collectOutput, whenEnded, type End } from './output.ts';
import { chooseRunner, launch, nameOf, type Runner } from './runner.ts';

export interface EmbeddedPostgres {
  /** node-postgres connection settings (Unix socket directory as host). */
  connection: { host: string; port: number; user: string; database: string };
  /** Resolves with a reason if the server process ends without stop() being called. */
  exited: Promise<{ code: number | null; signal: string | null; tail: string }>;
  /** Shuts down fast; escalates after a bound; may be called again. */
  stop(): Promise<void>;
}

const DATABASE = 'parley';
const START_ATTEMPTS = 5;
/** How often readiness is checked: with the pauses in between, crash recovery gets 5 minutes. */
const READY_ATTEMPTS = 3_000;
const READY_POLL_MS = 100;

const DEFAULTS: Record<string, string> = {
  cluster_name: 'parley',
  max_connections: '60',
  shared_buffers: '128MB',
  synchronous_commit: 'on',
  // There are no replicas, so nothing is written that only they would read.
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  wal_buffers: '16MB',
  checkpoint_timeout: '15min',
  // Tables grow fast after the first start, and plans depend on the statistics.
  autovacuum_naptime: '15s',
  // Counters of conversations and members change with every message. A fifth of a large table, which is usual, is too much to wait for:
  // little and often keeps their pages, and the free room in them that updates need, in memory.
  autovacuum_vacuum_scale_factor: '0.05',
  autovacuum_vacuum_insert_scale_factor: '0.05',
  autovacuum_analyze_scale_factor: '0.05',
  // As fast as one disk of today reads: what is behind at the usual pace never catches up.
  autovacuum_vacuum_cost_limit: '1000',
  max_logical_replication_workers: '0',
  // Queries are short; and /dev/shm, which parallel ones use, is small in containers.
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '',
  // The client gets errors in full; in this log their texts could contain what users wrote.
  log_min_messages: 'log',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
};

export async function startEmbeddedPostgres(options: {
  dataDir: string;
  log: (line: string) => void;
  settings?: Record<string, string>;
}): Promise<EmbeddedPostgres> {
  const { log, settings } = options;
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(options.dataDir);
  const pgdata = join(dataDir, 'postgres');
  const release = await lockFile(join(dataDir, 'postgres.lock'));
  try {
    const runner = await chooseRunner({ pgdata, binaries: await locateBinaries(), log });
    for (let attempt = 1; ; attempt++) {
      await clearOrphan(pgdata, log);
      await ensureCluster(runner, dataDir, pgdata, log);
      const host = await prepareSocketDirectory(runner, pgdata);
      const server = launchServer({ runner, pgdata, host, settings, log });
      try {
        await waitUntilReady(server, host);
        return supervise(server, host, async () => {
          if (host !== pgdata) await rmdir(host).catch(() => undefined);
          release();
        });
      } catch (error) {
        const endedByItself = server.hasEnded();
        await stopServer(server);
        // Processes left over from a server killed a moment ago can still hold its shared memory.
        if (!endedByItself || attempt === START_ATTEMPTS) throw error;
        log(`embedded PostgreSQL did not start, attempt ${attempt} of ${START_ATTEMPTS}`);
        await delay(100 * 2 ** attempt);
      }
    }
  } catch (error) {
    release();
    throw error;
  }
}

/** The connection to the server that a running service has in this data directory, if there is one. */
export async function runningPostgres(dataDir: string): Promise<EmbeddedPostgres['connection'] | undefined> {
  const real = await realpath(dataDir).catch(() => undefined);
  if (real === undefined) return undefined;
  const host = socketDirectory(join(real, 'postgres'));
  try {
    await query(host, DATABASE, 'SELECT 1');
    return connectionTo(host);
  } catch {
    return undefined;
  }
}

type Server = ReturnType<typeof launchServer>;

function launchServer(options: {
  runner: Runner;
  pgdata: string;
  host: string;
  settings: Record<string, string> | undefined;
  log: (line: string) => void;
}) {
  const { runner, pgdata, host } = options;
  const directory = nameOf(runner, pgdata);
  const settings = {
    ...DEFAULTS,
    ...options.settings,
    fsync: 'on',
    listen_addresses: '',
    port: `${PORT}`,
    unix_socket_directories: host === pgdata ? directory : host,
    unix_socket_permissions: '0700',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = launch(runner, [runner.binaries.postgres, '-D', directory, ...flags], pgdata);
  const { tail } = collectOutput(child, options.log);
  let over = false;
  const ended = whenEnded(child).finally(() => (over = true));
  return { ended, tail, hasEnded: () => over, kill: (signal: NodeJS.Signals) => child.kill(signal) };
}

function supervise(server: Server, host: string, release: () => Promise<void>): EmbeddedPostgres {
  let stopping: Promise<void> | undefined;
  const released = server.ended.then(release);
  const exited = new Promise<End & { tail: string }>((resolve) => {
    void server.ended.then((end) => {
      if (!stopping) resolve({ ...end, tail: server.tail() });
    });
  });
  const stop = async (): Promise<void> => {
    await stopServer(server);
    await released;
  };
  return { connection: connectionTo(host), exited, stop: () => (stopping ??= stop()) };
}

async function stopServer(server: Server): Promise<void> {
  for (const [signal, milliseconds] of SHUTDOWN_STEPS) {
    if (server.hasEnded()) return;
    server.kill(signal);
    const timeout = new AbortController();
    await Promise.race([server.ended, delay(milliseconds, undefined, { signal: timeout.signal })]);
    timeout.abort();
  }
  if (!server.hasEnded()) throw new Error('the embedded PostgreSQL server does not end');
}

async function waitUntilReady(server: Server, host: string): Promise<void> {
  for (let attempt = 0; attempt < READY_ATTEMPTS; attempt++) {
    if (server.hasEnded()) {
      const { code, signal } = await server.ended;
      throw new Error(`embedded PostgreSQL ended while starting (${signal ?? code}): ${server.tail()}`);
    }
    try {
      await ensureDatabase(host);
      return;
    } catch (error) {
      if (!isStarting(error)) throw error;
    }
    await Promise.race([server.ended, delay(Math.min(READY_POLL_MS, 5 * 1.3 ** attempt))]);
  }
  throw new Error(`embedded PostgreSQL was not ready in time: ${server.tail()}`);
}

/** True if there is no socket yet, or the server says that it still recovers (57P03). */
function isStarting(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || error.code === '57P03';
}

async function ensureDatabase(host: string): Promise<void> {
  try {
    await query(host, DATABASE, 'SELECT 1');
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== '3D000') throw error;
    await query(host, 'postgres', `CREATE DATABASE ${DATABASE}`);
  }
}

async function query(host: string, database: string, text: string): Promise<void> {
  const client = new pg.Client({
    ...connectionTo(host),
    database,
    ssl: false,
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(text);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function connectionTo(host: string): EmbeddedPostgres['connection'] {
  return { host, port: PORT, user: SUPERUSER, database: DATABASE };
}
