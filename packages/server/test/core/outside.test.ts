import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import type { Logger } from '../../src/platform/logging.ts';
import { parseTarget } from '../../src/platform/history/target.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { outsideConnection } from '../../src/platform/postgres/outside.ts';
import { StoreError, unreachable, whenReached } from '../../src/platform/postgres/reach.ts';
import { startPostgresWithTls } from '../history/servers.ts';
import { use } from '../support/use.ts';

/** docs/cluster.md, DATABASE_URL: what it may say, and what is said when it leads nowhere. */

const server = use(startPostgresWithTls, (s) => s.stop());
const directory = use(
  async () => ({ path: await mkdtemp(join(tmpdir(), 'parley-url-')) }),
  ({ path }) => rm(path, { recursive: true }),
);

const tlsOf = (query: string, env = {}) =>
  outsideConnection(`postgres://u:pass%40word@h:1/db${query}`, env).tls;

test('docs/cluster.md: sslmode means the same in DATABASE_URL and in a customer’s URL', async () => {
  const root = join(directory.path, 'root.pem');
  const pem = '-----BEGIN CERTIFICATE-----';
  await writeFile(root, pem);
  const ca = encodeURIComponent(Buffer.from(pem).toString('base64'));
  for (const mode of ['disable', 'require', 'verify-ca', 'verify-full']) {
    const theirs = (more = '') => parseTarget(`postgres://u:p@h:1/db?sslmode=${mode}${more}`).tls;
    assert.equal(tlsOf(`?sslmode=${mode}`), theirs(), mode);
    assert.equal(tlsOf(`?sslmode=${mode}&sslrootcert=${root}`), theirs(`&ca=${ca}`), `${mode}, with a root`);
  }
  assert.equal(tlsOf('?sslmode=require'), 'unverified');
  assert.equal(tlsOf(`?sslmode=require&sslrootcert=${root}`), 'verified');
  for (const mode of ['prefer', 'allow', 'x']) {
    assert.throws(() => tlsOf(`?sslmode=${mode}`), /sslmode of DATABASE_URL must be disable, require/);
    assert.throws(
      () => parseTarget(`postgres://u:p@h/db?sslmode=${mode}`),
      /sslmode must be disable, require/,
    );
  }
  assert.equal(tlsOf(''), 'off');
  assert.equal(tlsOf('?ssl=true'), 'verified');
  assert.equal(tlsOf('', { PGSSLMODE: 'require' }), 'unverified');
  assert.equal(tlsOf('?sslmode=disable', { PGSSLMODE: 'require' }), 'off');
});

test('a DATABASE_URL that cannot be used is refused without a word of what it says', () => {
  for (const text of [
    'mysql://u:geheim@h/db',
    'geheim',
    'postgres://u:geheim@h/db?sslmode=geheim',
    'postgres://u:geheim@h/db?sslrootcert=/geheim/root.pem',
  ])
    assert.throws(
      () => outsideConnection(text, {}),
      (error: Error) => !error.message.includes('geheim') && error.message.includes('DATABASE_URL'),
      text,
    );
});

test('the rest of DATABASE_URL reaches the driver as it is', () => {
  const { connection } = outsideConnection(
    'postgres://u:pass%40word@h:1/db?sslmode=disable&host=%2Ftmp%2Fx&application_name=y',
    {},
  );
  const { user, password, host, port, database } = new pg.Client(connection);
  assert.deepEqual([user, password, host, port, database], ['u', 'pass@word', '/tmp/x', 1, 'db']);
});

test('sslmode on a real server: require encrypts, a root certificate and verify-full also verify certificate and name', async () => {
  const root = join(directory.path, 'server.pem');
  await writeFile(root, Buffer.from(server.ca, 'base64'));
  const plain = await server.createDatabase();
  const encrypted = async (query: string, host = '127.0.0.1'): Promise<boolean> => {
    const { connection } = outsideConnection(
      plain.replace('?sslmode=disable', query).replace('127.0.0.1', host),
      {},
    );
    const db = new PgDb(connection, { max: 1, onError: () => undefined });
    try {
      const [row] = await db.query<{ ssl: boolean }>(
        'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
      );
      return row!.ssl;
    } finally {
      await db.close();
    }
  };
  assert.equal(await encrypted('?sslmode=disable'), false);
  assert.equal(await encrypted('?sslmode=require'), true);
  assert.equal(await encrypted(`?sslmode=verify-full&sslrootcert=${root}`), true);
  assert.equal(await encrypted(`?sslmode=require&sslrootcert=${root}`), true);
  await assert.rejects(encrypted('?sslmode=verify-full'), /self-signed certificate/);
  await assert.rejects(encrypted(`?sslmode=require&sslrootcert=${root}`, 'localhost'), /altnames/);
});

/** A port of this machine at which nothing listens. */
async function closedPort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}

test('DATABASE_URL away: the message names host, port and reason, never the password', async () => {
  const good = new URL(await server.createDatabase());
  good.password = 'geheim';
  const changed = (change: (url: URL) => void): string => {
    const url = new URL(good);
    change(url);
    return url.href;
  };
  const port = await closedPort();
  const told: [string, string][] = [
    [
      changed((u) => (u.port = String(port))),
      `127.0.0.1:${port} cannot be reached: the connection is refused`,
    ],
    [
      changed((u) => (u.pathname = '/absent')),
      `127.0.0.1:${good.port}: database "absent" does not exist. Create`,
    ],
    [
      changed((u) => (u.username = 'nobody')),
      `127.0.0.1:${good.port} refuses the user of DATABASE_URL: role "nobody" does not exist`,
    ],
    [
      changed((u) => u.searchParams.set('host', '/nowhere')),
      `PostgreSQL at /nowhere cannot be reached: there is no such`,
    ],
  ];
  for (const [url, text] of told)
    await assert.rejects(migrate(outsideConnection(url, {}).connection), (error: Error) => {
      assert.ok(error instanceof StoreError && error.message.includes(text), error.message);
      assert.ok(!error.message.includes('geheim'), error.message);
      return true;
    });
  // Looking a name up would leave the machine.
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND db.invalid'), { code: 'ENOTFOUND' });
  assert.equal(
    unreachable({ connectionString: 'postgres://u:geheim@db.invalid/x' }, unknown).message,
    'PostgreSQL at db.invalid:5432 cannot be reached: the host name is unknown',
  );
  const wrong = Object.assign(new Error('password authentication failed for user "u"'), { code: '28P01' });
  assert.match(
    unreachable({ connectionString: 'postgres://u:geheim@[::1]:6/x' }, wrong).message,
    /^PostgreSQL at \[::1\]:6 refuses the user of DATABASE_URL: password authentication failed/,
  );
});

test('DATABASE_URL away: the start waits and says why', async () => {
  const port = await closedPort();
  const { connection } = outsideConnection(`postgres://u:geheim@127.0.0.1:${port}/x`, {});
  const lines: string[] = [];
  const logger = { warn: (line: string) => lines.push(line) } as unknown as Logger;
  let tries = 0;
  await whenReached(logger, async () => {
    if (++tries === 1) await migrate(connection);
  });
  assert.equal(lines.length, 1);
  assert.match(
    lines[0]!,
    new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached: .* is refused.*trying again`),
  );
});
