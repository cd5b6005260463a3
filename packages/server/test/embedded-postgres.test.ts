import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import {
  access,
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, test } from 'node:test';
import pg from 'pg';
import { locateBinaries } from '../src/platform/postgres/embedded/binaries.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../src/platform/postgres/embedded/index.ts';
import { chooseRunner, launch, nameOf } from '../src/platform/postgres/embedded/runner.ts';

const MODULE = new URL('../src/platform/postgres/embedded/index.ts', import.meta.url).href;
const scratch = await mkdtemp(join(tmpdir(), 'parley-pg-'));
const cleanups: (() => Promise<unknown> | void)[] = [];
let directories = 0;

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await rm(scratch, { recursive: true, force: true });
});

async function newDirectory(): Promise<string> {
  const path = join(scratch, `d${++directories}`);
  await mkdir(path, { mode: 0o700 });
  return path;
}

async function start(
  dataDir: string,
  log: (line: string) => void = () => undefined,
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log });
  cleanups.push(() => server.stop());
  return server;
}

async function query(connection: pg.ClientConfig, text: string): Promise<unknown[]> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query({ text, rowMode: 'array' })).rows as unknown[];
  } finally {
    await client.end();
  }
}

async function postmasterPid(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);
}

/** Resolves when the file is there (or is not), by the directory's change events. */
async function untilFile(directory: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const watcher = watch(directory);
  try {
    const signal = AbortSignal.timeout(150_000);
    for (;;) {
      const change = once(watcher, 'change', { signal });
      change.catch(() => undefined);
      if (await holds()) return;
      await change;
    }
  } finally {
    watcher.close();
  }
}

interface Service {
  child: ChildProcess;
  connection: pg.ClientConfig;
  nextLine(): Promise<string>;
}

/** A process with a group of its own that runs the server and survives SIGTERM and SIGINT, as a draining service does. */
async function startService(dataDir: string, env: NodeJS.ProcessEnv = process.env): Promise<Service> {
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(MODULE)});
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => console.log(signal));
    const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, log: () => {} });
    console.log(JSON.stringify(server.connection));
    void server.exited.then(() => console.log('exited'));
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanups.push(() => killGroup(child));
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const nextLine = async () => ((await lines.next()).value as string | undefined) ?? 'ended';
  const first = await nextLine();
  assert.match(first, /^\{/, 'the service starts');
  return { child, connection: JSON.parse(first) as pg.ClientConfig, nextLine };
}

async function killGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  process.kill(-child.pid!, 'SIGKILL');
  await exit;
}

/** Kills the service and waits until its server, left alone, has shut down cleanly. */
async function killService(service: Service, dataDir: string): Promise<void> {
  const pgdata = join(dataDir, 'postgres');
  await killGroup(service.child);
  await untilFile(pgdata, () => !existsSync(join(pgdata, 'postmaster.pid')));
}

/** A PATH with only these commands. */
async function pathWith(commands: string[]): Promise<string> {
  // Reachable for every uid, unlike the data.
  await chmod(scratch, 0o755);
  const directory = join(scratch, `bin-${commands.join('-')}`);
  await mkdir(directory, { mode: 0o755 });
  for (const command of commands) {
    for (const from of (process.env['PATH'] ?? '').split(delimiter)) {
      if (existsSync(join(from, command))) {
        await symlink(join(from, command), join(directory, command));
        break;
      }
    }
  }
  return directory;
}

describe('ARCHITECTURE "Known traps of the embedded server"', () => {
  test('first start serves, without a TCP port, durably, on a private socket; a restart keeps the data', async () => {
    const dataDir = await newDirectory();
    const first = await start(dataDir);
    await query(first.connection, 'CREATE TABLE kept AS SELECT 42 AS value');
    const settings = `SELECT current_setting('listen_addresses'), current_setting('fsync'),
      current_setting('synchronous_commit'), current_setting('server_encoding'), current_database()`;
    assert.deepEqual(await query(first.connection, settings), [['', 'on', 'on', 'UTF8', 'parley']]);
    assert.equal((await stat(first.connection.host)).mode & 0o777, 0o700);
    await first.stop();
    await first.stop();
    assert.equal(
      existsSync(join(dataDir, 'postgres', 'postmaster.pid')),
      false,
      'stop() is a clean shutdown',
    );
    const second = await start(dataDir);
    assert.deepEqual(await query(second.connection, 'SELECT value FROM kept'), [[42]]);
    await second.stop();
  });

  test('an interrupted initialization does not stop the next start', async () => {
    const dataDir = await newDirectory();
    const left = join(dataDir, 'postgres-init-abc123');
    await mkdir(join(left, 'base'), { recursive: true });
    await writeFile(join(left, 'PG_VERSION'), '18\n');
    const server = await start(dataDir);
    assert.deepEqual(await query(server.connection, 'SELECT 1'), [[1]]);
    assert.deepEqual((await readdir(dataDir)).sort(), ['postgres', 'postgres.lock']);
    await server.stop();
  });

  test('a path too long for a socket gets a private directory elsewhere, removed at the end', async () => {
    const dataDir = join(await newDirectory(), 'x'.repeat(120), 'y'.repeat(60));
    const server = await start(dataDir);
    assert.deepEqual(await query(server.connection, 'SELECT 1'), [[1]]);
    assert.ok(!server.connection.host.startsWith(dataDir));
    assert.equal((await stat(server.connection.host)).mode & 0o777, 0o700);
    await server.stop();
    await assert.rejects(access(server.connection.host), { code: 'ENOENT' });
  });

  test('a platform without binaries is told what to do', async () => {
    await assert.rejects(locateBinaries('plan9-mips'), /no embedded PostgreSQL for plan9-mips.*DATABASE_URL/);
  });
});

describe('api#signals: signals and kill -9', () => {
  test('signals to the process group do not reach the server', async () => {
    const dataDir = await newDirectory();
    const service = await startService(dataDir);
    const held = new pg.Client(service.connection);
    await held.connect();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.kill(-service.child.pid!, signal);
      assert.equal(await service.nextLine(), signal);
      // A server that heard SIGTERM refuses new connections, one that heard SIGINT closes this one.
      assert.deepEqual(await query(service.connection, 'SELECT pg_sleep(0.2) IS NULL'), [[false]]);
      assert.deepEqual(await query(service.connection, 'SELECT 1'), [[1]]);
      assert.equal((await held.query('SELECT 1')).rowCount, 1);
    }
    await held.end();
    await killService(service, dataDir);
  });

  const withoutNamespaces = ['sh', 'flock', 'setpriv', 'true'];
  const withoutUtilities = ['sh', 'flock', 'true'];
  for (const [title, commands] of [
    ['with all utilities', undefined],
    ['without user namespaces', withoutNamespaces],
    ['without user namespaces and death signal', withoutUtilities],
  ] as const) {
    test(`kill -9 of the group, ${title}: the server ends by itself, and nothing committed is lost`, async () => {
      const env = commands ? { ...process.env, PATH: await pathWith([...commands]) } : process.env;
      const dataDir = await newDirectory();
      const service = await startService(dataDir, env);
      await query(service.connection, 'CREATE TABLE kept AS SELECT 7 AS value');
      await killService(service, dataDir);

      const again = await startService(dataDir, env);
      assert.deepEqual(await query(again.connection, 'SELECT value FROM kept'), [[7]]);
      await query(again.connection, 'INSERT INTO kept VALUES (8)');
      await killGroup(again.child);
      const third = await start(dataDir);
      assert.deepEqual(await query(third.connection, 'SELECT value FROM kept ORDER BY 1'), [[7], [8]]);
      await third.stop();
    });
  }

  test('kill -9 of the server: exited says so, and its postmaster.pid with a reused pid does no harm', async () => {
    const dataDir = await newDirectory();
    const first = await start(dataDir);
    await query(first.connection, 'CREATE TABLE kept AS SELECT 9 AS value');
    process.kill(await postmasterPid(dataDir), 'SIGKILL');
    const end = await first.exited;
    assert.equal(end.signal, 'SIGKILL');
    assert.match(end.tail, /ready to accept connections/);

    const stranger = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
    cleanups.push(() => void stranger.kill());
    const file = join(dataDir, 'postgres', 'postmaster.pid');
    await writeFile(file, (await readFile(file, 'utf8')).replace(/^\d+/, `${stranger.pid}`));
    const second = await start(dataDir);
    assert.deepEqual(await query(second.connection, 'SELECT value FROM kept'), [[9]]);
    assert.equal(stranger.exitCode ?? stranger.signalCode, null, 'the stranger lives');
    await second.stop();
    await writeFile(file, '');
    await (await start(dataDir)).stop();
  });

  test('a live server that nobody supervises is stopped cleanly and replaced', async () => {
    const dataDir = await newDirectory();
    await (await start(dataDir)).stop();
    const pgdata = join(dataDir, 'postgres');
    const runner = await chooseRunner({ pgdata, binaries: await locateBinaries(), log: () => undefined });
    const name = nameOf(runner, pgdata);
    const flags = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${name}`];
    const orphan = launch(runner, [runner.binaries.postgres, '-D', name, ...flags], pgdata);
    cleanups.push(() => void orphan.kill('SIGKILL'));
    const exit = once(orphan, 'exit');
    const pidFile = join(pgdata, 'postmaster.pid');
    await untilFile(pgdata, async () => (await readFile(pidFile, 'utf8').catch(() => '')).includes('ready'));
    const lines: string[] = [];
    const server = await start(dataDir, (line) => lines.push(line));
    assert.deepEqual(await exit, [0, null]);
    assert.ok(lines.some((line) => line.includes(`process ${orphan.pid}`)));
    assert.deepEqual(await query(server.connection, 'SELECT 1'), [[1]]);
    await server.stop();
  });
});

test('a second instance on a live data directory is refused, and the first goes on serving', async () => {
  const dataDir = await newDirectory();
  const service = await startService(dataDir);
  const pid = await postmasterPid(dataDir);
  await assert.rejects(
    start(dataDir),
    new RegExp(`in use by another instance \\(process ${service.child.pid},`),
  );
  assert.deepEqual(await query(service.connection, 'SELECT 1'), [[1]]);
  assert.equal(await postmasterPid(dataDir), pid);
  await killService(service, dataDir);
});
