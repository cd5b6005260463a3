import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { startService } from './service.ts';
import type { Service } from './service.ts';
import { copyShared } from './shared.ts';

/** A throw-away PostgreSQL of the system (15 or newer), on a Unix socket, as an unprivileged user. */
export interface OutsidePostgres {
  /** A DATABASE_URL with a database of its own. */
  createDatabase(): Promise<string>;
  stop(): Promise<void>;
}

/** Root may not run PostgreSQL: it runs it as nobody. */
const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

const env = { LC_ALL: 'C.UTF-8', PATH: '/usr/bin:/bin' };

/** The folder of the system's PostgreSQL programs. */
export function postgresPrograms(): string {
  const [bin] = globSync('/usr/lib/postgresql/*/bin').sort();
  if (bin === undefined) throw new Error('PostgreSQL 15 or newer is needed: the Debian package postgresql.');
  return bin;
}

/** Makes the files of a server whose superuser is `parley`, in a directory that is not there yet. */
export async function makeCluster(data: string): Promise<void> {
  const init = async (at: string): Promise<void> => {
    if (identity.uid !== undefined && existsSync(at)) await chown(at, identity.uid, identity.gid);
    const initdb = spawn(
      join(postgresPrograms(), 'initdb'),
      ['-D', at, '-U', 'parley', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
      { ...identity, cwd: dirname(data), env, stdio: 'ignore' },
    );
    const [code] = (await once(initdb, 'exit')) as [number | null];
    if (code !== 0) throw new Error(`initdb ended with ${code}`);
  };
  if (!(await copyShared('postgres', data, init))) await init(data);
}

export async function startPostgres(): Promise<OutsidePostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-pg-'));
  if (identity.uid !== undefined) await chown(directory, identity.uid, identity.gid);
  const data = join(directory, 'data');
  await makeCluster(data);

  const settings = ['listen_addresses=', `unix_socket_directories=${directory}`, 'fsync=off'];
  const server = spawn(
    join(postgresPrograms(), 'postgres'),
    ['-D', data, ...settings.flatMap((s) => ['-c', s])],
    {
      ...identity,
      cwd: directory,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const exited = once(server, 'exit');
  const kill = () => server.kill('SIGKILL');
  process.once('exit', kill);
  await new Promise<void>((resolve, reject) => {
    let output = '';
    createInterface({ input: server.stderr }).on('line', (line) => {
      output = `${output}${line}\n`.slice(-4_000);
      if (line.includes('ready to accept connections')) resolve();
    });
    void exited.then(() => reject(new Error(`PostgreSQL did not start:\n${output}`)));
  });

  const urlOf = (database: string) =>
    `postgresql://parley@localhost/${database}?host=${encodeURIComponent(directory)}`;
  return {
    async createDatabase() {
      const name = `test_${randomBytes(6).toString('hex')}`;
      const client = new pg.Client({ connectionString: urlOf('postgres') });
      await client.connect();
      await client.query(`CREATE DATABASE ${name}`).finally(() => client.end());
      return urlOf(name);
    },
    async stop() {
      server.kill('SIGINT');
      await exited;
      process.removeListener('exit', kill);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A PostgreSQL that the service runs on. */
export interface TestStore {
  name: string;
  start(env?: Record<string, string>): Promise<Service>;
}

const embedded: TestStore = { name: 'embedded PostgreSQL', start: (env = {}) => startService({ env }) };

const outside: TestStore = {
  name: 'outside PostgreSQL',
  async start(env = {}) {
    const postgres = await startPostgres();
    try {
      const connectionString = await postgres.createDatabase();
      const service = await startService({
        env: {
          DATABASE_URL: connectionString,
          CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
          ...env,
        },
      });
      return {
        ...service,
        async dispose() {
          await service.dispose();
          await postgres.stop();
        },
      };
    } catch (error) {
      await postgres.stop();
      throw error;
    }
  },
};

/** The same tests pass on both. */
export const stores: readonly TestStore[] = [embedded, outside];
