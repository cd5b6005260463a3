import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import pg from 'pg';
import type { Message } from '@parley/protocol';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { createApi } from '../support/api.ts';
import { startPostgres } from '../support/postgres.ts';
import { environments, startService } from '../support/service.ts';
import { use } from '../support/use.ts';
import { createGroup } from './tools.ts';

/** docs/cluster.md, PgBouncer: Debian's own, in front of the store, without any setting for us. */

const postgres = use(startPostgres, (p) => p.stop());

/** Root may not run PgBouncer: it runs it as nobody. */
const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

interface Pooler {
  url: string;
  stop(): Promise<void>;
}

async function startPooler(mode: string): Promise<Pooler> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-bouncer-'));
  if (identity.uid !== undefined) await chown(directory, identity.uid, identity.gid);
  const store = new URL(await postgres.createDatabase());
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(
    file,
    `[databases]
* = host=${store.searchParams.get('host')} port=5432 user=parley
[pgbouncer]
pool_mode = ${mode}
auth_type = any
listen_addr =
listen_port = 6432
unix_socket_dir = ${directory}
default_pool_size = 40
`,
  );
  const child = spawn('pgbouncer', [file], { ...identity, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  await new Promise<void>((resolve, reject) => {
    let output = '';
    createInterface({ input: child.stderr }).on('line', (line) => {
      output = `${output}${line}\n`.slice(-4_000);
      if (line.includes('process up')) resolve();
    });
    void exited.then(() => reject(new Error(`PgBouncer did not start:\n${output}`)));
  });
  return {
    url: `postgresql://parley@localhost${store.pathname}?host=${encodeURIComponent(directory)}&port=6432`,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

test('docs/cluster.md, pool_mode = session: the service starts, sends and is ready; sessions have their settings', async () => {
  const pooler = await startPooler('session');
  try {
    const service = await startService({
      env: { DATABASE_URL: pooler.url, CHAT_MASTER_KEY: randomBytes(32).toString('base64') },
    });
    try {
      const server = createApi(service.url, environments.dev.secretKey);
      for (const id of ['ann', 'bob']) await server('PUT', `/v1/users/${id}`, { name: id });
      const conversation = await createGroup(server, ['ann', 'bob']);
      const sent = await server('POST', `/v1/conversations/${conversation}/messages`, {
        text: 'through it',
        senderId: 'ann',
      });
      assert.equal(sent.status, 201, JSON.stringify(sent.body));
      assert.equal((sent.body as Message).text, 'through it');
      assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
      const db = new PgDb({ connectionString: pooler.url }, { max: 1, onError: () => undefined });
      const [row] = await db.query<{ zone: string; lock: string; name: string }>(
        `SELECT current_setting('TimeZone') AS zone, current_setting('lock_timeout') AS lock, current_setting('application_name') AS name`,
      );
      assert.deepEqual([row!.zone, row!.lock], ['UTC', '5s']);
      assert.match(row!.name, /^parley \S+ schema \d+$/);
      await db.close();
    } finally {
      await service.dispose();
    }
  } finally {
    await pooler.stop();
  }
});

test('docs/cluster.md, pool_mode = session: a query that takes long is found in PostgreSQL and left alone', async () => {
  const pooler = await startPooler('session');
  const dead: string[] = [];
  const db = new PgDb({ connectionString: pooler.url }, { max: 1, onError: (_, what) => dead.push(what) });
  try {
    // Twice the look of the watch at a query that got no answer for three seconds.
    await db.query('SELECT pg_sleep(7)');
    assert.deepEqual(dead, []);
  } finally {
    await db.close();
    await pooler.stop();
  }
});

for (const mode of ['transaction', 'statement'])
  test(`docs/cluster.md, pool_mode = ${mode}: the start is refused, and the message says what it is`, async () => {
    const pooler = await startPooler(mode);
    // Others use it too.
    const others = Array.from({ length: 3 }, () => new pg.Client({ connectionString: pooler.url }));
    try {
      await Promise.all(others.map((client) => client.connect()));
      await Promise.all(others.map((client) => client.query('SELECT pg_sleep(0.2)')));
      await assert.rejects(
        migrate({ connectionString: pooler.url }),
        /DATABASE_URL leads to a connection pooler.*Set pool_mode to session/,
      );
    } finally {
      await Promise.all(others.map((client) => client.end()));
      await pooler.stop();
    }
  });
