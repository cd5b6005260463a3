import { execFile, spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { cached, onPath } from '../../../../scripts/test-cache.ts';
import { freePort, start as startProgram } from '../storage/process.ts';
import { makeCluster, postgresPrograms } from '../support/postgres.ts';
import { copyShared } from '../support/shared.ts';

/** Customers' databases: real servers on loopback with throw-away data. */
export interface CustomerDatabase {
  name: string;
  /** A new, empty database as its admin. */
  createDatabase(): Promise<string>;
  /** kill -9, and start again on the same data. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stands still with its connections open, and goes on. */
  pause?(): void;
  resume?(): void;
  /** Where it has a disk of its own: leaves no room on it, and makes room again. */
  disk?: Disk | null;
  stop(): Promise<void>;
}

interface Disk {
  fill(): Promise<void>;
  free(): Promise<void>;
}

const run = promisify(execFile);
/** Root may run neither: nobody does. */
const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

async function server(
  command: string,
  args: string[],
  cwd: string,
  ready: () => Promise<unknown>,
): Promise<Required<Pick<CustomerDatabase, 'kill' | 'start' | 'pause' | 'resume'>>> {
  let child: ChildProcess | undefined;
  const atExit = (): void => void child?.kill('SIGKILL');
  process.once('exit', atExit);
  const start = async (): Promise<void> => {
    for (const deadline = Date.now() + 120_000; ;) {
      let output = '';
      const started = spawn(command, args, {
        ...identity,
        cwd,
        env: { LC_ALL: 'C.UTF-8', PATH: '/usr/sbin:/usr/bin:/bin' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [started.stdout, started.stderr])
        stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)));
      child = started;
      while (started.exitCode === null && Date.now() < deadline) {
        if (
          await ready().then(
            () => true,
            () => false,
          )
        )
          return;
        await delay(50);
      }
      // PostgreSQL refuses while children of the server that was killed still hold its shared memory.
      if (Date.now() < deadline && output.includes('pre-existing shared memory block')) continue;
      throw new Error(`${command} did not start:\n${output}`);
    }
  };
  await start();
  const signalAll = (signal: NodeJS.Signals): void => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    // PostgreSQL has a process for each connection.
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    for (const pid of children.split(' ').filter(Boolean))
      try {
        process.kill(Number(pid), signal);
      } catch {
        // it ended a moment ago
      }
  };
  return {
    start,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    kill: async () => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function directory(what: string): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), `parley-${what}-`));
  if (identity.uid !== undefined) await chown(made, identity.uid, identity.gid);
  return made;
}

/** Children of a server that was killed may still write there. */
const remove = (home: string): Promise<void> =>
  rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });

/** A small disk at this directory until `unmount`; null where nothing can be mounted. */
async function smallDisk(home: string): Promise<(Disk & { unmount(): void }) | null> {
  const owner = identity.uid === undefined ? '' : `,uid=${identity.uid},gid=${identity.gid},mode=700`;
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=300m${owner}`, 'tmpfs', home]);
  } catch {
    return null;
  }
  const unmount = () => spawnSync('umount', ['--lazy', home]);
  process.once('exit', unmount);
  const ballast = join(home, 'ballast');
  return {
    async fill() {
      const file = await open(ballast, 'w');
      try {
        for (const bytes of [1_048_576, 4_096])
          for (const zeros = Buffer.alloc(bytes); ;)
            if (
              !(await file.write(zeros).then(
                ({ bytesWritten }) => bytesWritten === bytes,
                () => false,
              ))
            )
              break;
      } finally {
        await file.close();
      }
    },
    free: () => rm(ballast, { force: true }),
    unmount: () => {
      process.removeListener('exit', unmount);
      unmount();
    },
  };
}

/** @param options `small`: on a small disk of its own, which can be filled. */
export const startCustomerPostgres = (options: { small?: boolean } = {}): Promise<CustomerDatabase> =>
  startPostgres([], options);

/** With a certificate for 127.0.0.1 that nobody signed; `ca` is it, in base64. */
export async function startPostgresWithTls(): Promise<CustomerDatabase & { ca: string }> {
  const home = await directory('customer-tls');
  const [key, cert] = [join(home, 'key.pem'), join(home, 'cert.pem')];
  const made = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
  ];
  const subject = ['-subj', '/CN=customer', '-addext', 'subjectAltName=IP:127.0.0.1'];
  await run('openssl', ['req', '-x509', '-days', '2', ...made, ...subject], { ...identity, cwd: home });
  const running = await startPostgres(['ssl=on', `ssl_key_file=${key}`, `ssl_cert_file=${cert}`]);
  const ca = (await readFile(cert)).toString('base64');
  return {
    ...running,
    ca,
    stop: async () => {
      await running.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function startPostgres(
  more: readonly string[] = [],
  { small = false }: { small?: boolean } = {},
): Promise<CustomerDatabase> {
  const home = await directory('customer-pg');
  const disk = small ? await smallDisk(home) : null;
  const data = join(home, 'data');
  await makeCluster(data);
  const port = await freePort();
  const urlOf = (database: string) => `postgresql://parley:x@127.0.0.1:${port}/${database}?sslmode=disable`;
  const once = async (database: string, sql: string) => {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'parley', database });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${home}`,
    'fsync=off',
    ...(disk ? ['max_wal_size=64MB', 'min_wal_size=32MB'] : []),
    ...more,
  ];
  const running = await server(
    join(postgresPrograms(), 'postgres'),
    ['-D', data, ...settings.flatMap((s) => ['-c', s])],
    home,
    () => once('postgres', 'SELECT 1'),
  );
  return {
    name: 'PostgreSQL',
    ...running,
    disk,
    async createDatabase() {
      const name = `c_${randomBytes(6).toString('hex')}`;
      await once('postgres', `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    async stop() {
      running.resume();
      await running.kill();
      disk?.unmount();
      await remove(home);
    },
  };
}

/** PgBouncer before a PostgreSQL; it knows the admin alone. Returns the URL by way of it. */
export async function startPgbouncer(
  behind: string,
  mode: 'transaction' | 'session',
): Promise<{ url: string; stop(): Promise<void> }> {
  const home = await directory('pgbouncer');
  const port = await freePort();
  const users = join(home, 'users.txt');
  const config = join(home, 'pgbouncer.ini');
  await writeFile(users, '"parley" "x"\n');
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    pool_mode: mode,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const { port: far } = new URL(behind);
  await writeFile(config, `[databases]\n* = host=127.0.0.1 port=${far}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const url = behind.replace(`:${far}/`, `:${port}/`);
  const running = await server('pgbouncer', [config], home, async () => {
    const client = new pg.Client({ connectionString: url.replace(/\?.*/, '') });
    await client.connect();
    await client.query('SELECT 1').finally(() => client.end());
  });
  return {
    url,
    stop: async () => {
      await running.kill();
      await remove(home);
    },
  };
}

/** Small, because the files are copied. */
const logSize = '--innodb-log-file-size=10M';

/** @param options `small`: on a small disk of its own, which can be filled. */
export async function startCustomerMariadb({ small = false } = {}): Promise<CustomerDatabase> {
  const home = await directory('customer-mariadb');
  const disk = small ? await smallDisk(home) : null;
  const data = join(home, 'data');
  const port = await freePort();
  const install = async (at: string): Promise<void> => {
    if (identity.uid !== undefined && existsSync(at)) await chown(at, identity.uid, identity.gid);
    await run(
      'mariadb-install-db',
      [
        '--no-defaults',
        `--datadir=${at}`,
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
        logSize,
      ],
      { ...identity, cwd: home },
    );
  };
  if (!(await copyShared('mariadb', data, install))) await install(data);
  const root = () => mysql.createConnection({ host: '127.0.0.1', port, user: 'root', password: '' });
  const running = await server(
    'mariadbd',
    [
      '--no-defaults',
      `--datadir=${data}`,
      `--socket=${home}/s`,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
      // What is committed survives a kill of the server, though not one of the machine.
      '--innodb-flush-log-at-trx-commit=2',
      '--skip-name-resolve',
      '--innodb-buffer-pool-size=32M',
      logSize,
    ],
    home,
    async () => {
      const client = await root();
      await client.query('SELECT 1').finally(() => client.destroy());
    },
  );
  return {
    name: 'MariaDB',
    ...running,
    disk,
    async createDatabase() {
      const name = `c_${randomBytes(6).toString('hex')}`;
      const client = await root();
      await client.query(`CREATE DATABASE ${name}`).finally(() => client.destroy());
      return `mysql://root@127.0.0.1:${port}/${name}?ssl-mode=DISABLED`;
    },
    async stop() {
      running.resume();
      await running.kill();
      disk?.unmount();
      await remove(home);
    },
  };
}

/**
 * A server that speaks MongoDB's protocol, where one is at hand: TEST_MONGODB_URL (an admin's, without a database), or FerretDB. Null
 * where none is.
 */
export async function startCustomerMongodb(): Promise<CustomerDatabase | null> {
  const given = process.env['TEST_MONGODB_URL'];
  const databaseAt = (base: string) =>
    `${base.replace(/\/$/, '')}/c_${randomBytes(6).toString('hex')}?tls=false`;
  const nothing = () => Promise.resolve();
  if (given)
    return {
      name: 'MongoDB',
      createDatabase: () => Promise.resolve(databaseAt(given)),
      kill: nothing,
      start: nothing,
      stop: nothing,
    };
  const ferretdb = cached('ferretdb');
  if (ferretdb === undefined) return null;
  const home = await mkdtemp(join(tmpdir(), 'parley-customer-mongodb-'));
  await mkdir(join(home, 'state'));
  const port = await freePort();
  const launch = () =>
    startProgram(
      ferretdb,
      [
        '--handler=sqlite',
        `--sqlite-url=file:${home}/`,
        `--state-dir=${home}/state`,
        `--listen-addr=127.0.0.1:${port}`,
        '--debug-addr=-',
        '--telemetry=disable',
        '--log-level=error',
      ],
      port,
      'FerretDB',
    );
  let running = await launch();
  return {
    name: 'FerretDB',
    createDatabase: () => Promise.resolve(databaseAt(`mongodb://127.0.0.1:${port}`)),
    kill: () => running.stop(),
    start: async () => {
      running = await launch();
    },
    async stop() {
      await running.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** mongo-java-server, in memory, where its jars and Java are at hand; null where they are not. */
export async function startMongoJavaServer(): Promise<CustomerDatabase | null> {
  const jars = cached('mongo-java-server/1.47.0');
  if (jars === undefined || !onPath('java')) return null;
  const port = await freePort();
  const source = new URL('./MongoJavaServer.java', import.meta.url).pathname;
  const launch = () =>
    startProgram(
      'java',
      [
        '-Xmx256m',
        '-XX:TieredStopAtLevel=1',
        '-XX:+UseSerialGC',
        '-cp',
        join(jars, '*'),
        source,
        String(port),
      ],
      port,
      'mongo-java-server',
    );
  let running = await launch();
  return {
    name: 'mongo-java-server',
    createDatabase: () =>
      Promise.resolve(`mongodb://127.0.0.1:${port}/c_${randomBytes(6).toString('hex')}?tls=false`),
    kill: () => running.stop(),
    start: async () => {
      running = await launch();
    },
    stop: () => running.stop(),
  };
}

export interface Receiver {
  url: string;
  /** What signatures are checked with; it may be changed. */
  secret: string;
  /** What it holds, by environment. */
  store: {
    ping(): object;
    environments: Map<
      string,
      Record<'message' | 'conversation' | 'member', Map<string, Record<string, unknown>>>
    >;
  };
  close(): Promise<void>;
}

/** The reference receiver of examples/. */
export async function startHistoryReceiver(
  secret = `whsec_${randomBytes(32).toString('base64')}`,
): Promise<Receiver> {
  const path = new URL('../../../../examples/history-receiver/receiver.mjs', import.meta.url).href;
  const example = (await import(path)) as {
    createStore(): Receiver['store'];
    createReceiver(secret: string, store: Receiver['store']): import('node:http').Server;
  };
  const store = example.createStore();
  let current = secret;
  let served = example.createReceiver(current, store);
  const listening = createServer((req, res) => void served.emit('request', req, res)).listen(
    await freePort(),
    '127.0.0.1',
  );
  await once(listening, 'listening');
  return {
    url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}/history`,
    get secret() {
      return current;
    },
    set secret(to) {
      current = to;
      served = example.createReceiver(to, store);
    },
    store,
    close: async () => {
      listening.closeAllConnections();
      listening.close();
      await once(listening, 'close');
    },
  };
}
