import { spawnSync } from 'node:child_process';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { locateBinaries } from '../../../packages/server/src/platform/postgres/embedded/binaries.ts';
import { ensureCluster } from '../../../packages/server/src/platform/postgres/embedded/cluster.ts';
import {
  chooseRunner,
  launch,
  nameOf,
} from '../../../packages/server/src/platform/postgres/embedded/runner.ts';
import { track } from '../children.ts';

/** The peers' PostgreSQL: Parley's own binaries and settings, fsync on, but on a TCP port, which ejabberd needs. */

export interface Database {
  port: number;
  pid: number;
  config(database: string): pg.ClientConfig;
  url(database: string): string;
  /** Makes the database unless it is there; true: it is new. */
  create(database: string): Promise<boolean>;
  stop(): Promise<void>;
}

const user = 'peers';
const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  max_connections: '60',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  max_parallel_workers_per_gather: '0',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
};

export async function startPostgres(directory: string, port: number): Promise<Database> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(directory);
  const pgdata = join(dataDir, 'postgres');
  const silent = () => undefined;
  const runner = await chooseRunner({ pgdata, binaries: await locateBinaries(), log: silent });
  await ensureCluster(runner, dataDir, pgdata, silent);
  await rm(join(pgdata, 'postmaster.pid'), { force: true });
  const flags = Object.entries({ ...settings, port: String(port) }).flatMap(([k, v]) => ['-c', `${k}=${v}`]);
  const child = track(
    launch(runner, [runner.binaries.postgres, '-D', nameOf(runner, pgdata), ...flags], pgdata),
  );
  const config = (database: string): pg.ClientConfig => ({ host: '127.0.0.1', port, user, database });
  const asSuperuser = { ...config('postgres'), user: 'parley' };
  for (let attempt = 0; ; attempt++) {
    try {
      await query(asSuperuser, 'SELECT 1');
      break;
    } catch (error) {
      if (attempt === 100 || child.process.exitCode !== null)
        throw new Error(`PostgreSQL did not start:\n${child.tail()}`, { cause: error });
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  const roles = await query(asSuperuser, `SELECT 1 FROM pg_roles WHERE rolname = '${user}'`);
  if (roles.rowCount === 0)
    await query(asSuperuser, `CREATE ROLE ${user} SUPERUSER LOGIN PASSWORD '${user}'`);
  return {
    port,
    pid: child.pid,
    config,
    url: (database) => `postgresql://${user}:${user}@127.0.0.1:${port}/${database}`,
    async create(database) {
      const found = await query(asSuperuser, `SELECT 1 FROM pg_database WHERE datname = '${database}'`);
      if (found.rowCount !== 0) return false;
      await query(asSuperuser, `CREATE DATABASE ${database} OWNER ${user}`);
      return true;
    },
    stop: () => child.stop('SIGINT'),
  };
}

export async function query(
  config: pg.ClientConfig,
  text: string,
  values?: unknown[],
): Promise<pg.QueryResult> {
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

/** 0 as long as the server has not made the table. */
export async function countRows(config: pg.ClientConfig, table: string, where = 'true'): Promise<number> {
  const { rows } = await query(config, 'SELECT to_regclass($1) IS NOT NULL AS there', [table]);
  if (!(rows[0] as { there: boolean }).there) return 0;
  const counted = await query(config, `SELECT count(*)::int AS n FROM ${table} WHERE ${where}`);
  return (counted.rows[0] as { n: number }).n;
}

export const postgresVersion = async (): Promise<string> =>
  spawnSync((await locateBinaries()).postgres, ['--version'], { encoding: 'utf8' }).stdout.trim();
