import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { allSeqs, checks, message } from '../../src/platform/history/conformance.ts';
import { migrateHistory, openHistory } from '../../src/platform/history/open.ts';
import type { HistorySource } from '../../src/platform/history/target.ts';
import type { History, HistoryError, MessageRecord } from '../../src/platform/history/port.ts';
import type { HistoryDeps } from '../../src/platform/history/shared.ts';
import { maskUrl } from '../../src/platform/history/target.ts';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { use } from '../support/use.ts';
import {
  startCustomerMariadb,
  startCustomerMongodb,
  startCustomerPostgres,
  startMongoJavaServer,
  startPostgresWithTls,
  startHistoryReceiver,
} from './servers.ts';
import type { CustomerDatabase } from './servers.ts';
import { keepsTime } from './times.ts';

/** The four engines on real servers: one suite, which is also what customers run on their own endpoints. */

const outbound = createOutbound({ allowPrivate: true });
const deps = (env: string): HistoryDeps => ({
  outbound,
  tenant: 1,
  env,
  random: (bytes) => randomBytes(bytes),
  seconds: () => Math.floor(Date.now() / 1000),
});
let made = 0;
const unique = (what: string): string => `${what}_${++made}`;

function passes(history: History): void {
  for (const check of checks) test(check.name, () => check.run(history, unique));
}

interface Opened {
  admin: string;
  source: HistorySource;
  history: History;
  server: CustomerDatabase;
}

/** Tables made by an admin, and everything else done by the writer that this made, where the engine can make one. */
async function opened(start: () => Promise<CustomerDatabase | null>): Promise<Opened> {
  const server = (await start())!;
  try {
    const admin = await server.createDatabase();
    const { runtimeUrl } = await migrateHistory({ url: admin }, deps('env_a'));
    const source = { url: runtimeUrl ?? admin };
    return { admin, source, history: await openHistory(source, deps('env_a')), server };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

const engines: [name: string, start: () => Promise<CustomerDatabase | null>][] = [
  ['PostgreSQL', startCustomerPostgres],
  ['MariaDB', startCustomerMariadb],
];
const mongodb = await Promise.all([startCustomerMongodb(), startMongoJavaServer()]);
for (const server of mongodb) if (server) engines.push([server.name, () => Promise.resolve(server)]);
const [ferretdb, javaServer] = mongodb;
const without = {
  ferretdb: 'set TEST_MONGODB_URL, or build FerretDB 1.24 into /var/cache/parley-tests',
  javaServer: 'npm test fetches mongo-java-server where Maven and Java are, or can be installed',
};
if (!ferretdb && !javaServer)
  console.log(`!!! LEFT OUT: THE ADAPTER OF MONGODB: ${without.javaServer}; or ${without.ferretdb}.`);
else if (!ferretdb) console.log(`!!! MONGODB WAS TESTED WITH MONGO-JAVA-SERVER ALONE: ${without.ferretdb}.`);
else if (!javaServer) console.log(`!!! LEFT OUT: MONGO-JAVA-SERVER: ${without.javaServer}.`);

/** Makes an admin of one database that may create no users: `limited`. */
const limitedAdmins: Record<string, (url: string) => Promise<void>> = {
  async PostgreSQL(url) {
    const client = new pg.Client(url.replace(/\?.*/, ''));
    await client.connect();
    await client.query(`CREATE ROLE limited LOGIN PASSWORD 'limited'`);
    await client.query('GRANT ALL ON SCHEMA public TO limited').finally(() => client.end());
  },
  async MariaDB(url) {
    const { hostname, port, pathname } = new URL(url);
    const client = await mysql.createConnection({ host: hostname, port: Number(port), user: 'root' });
    await client.query(`CREATE USER limited@'%' IDENTIFIED BY 'limited'`);
    await client.query(`GRANT ALL ON ${pathname.slice(1)}.* TO limited@'%'`).finally(() => client.end());
  },
};

const version1 = [
  'ALTER TABLE parley_messages DROP COLUMN extras',
  'ALTER TABLE parley_conversations DROP COLUMN extras',
  'ALTER TABLE parley_members DROP COLUMN extras',
  `UPDATE parley_meta SET value = '1' WHERE value = '2'`,
];
/** Makes the tables as they were in version 1. */
const makeOld: Record<string, (url: string) => Promise<void>> = {
  async PostgreSQL(url) {
    const client = new pg.Client(url.replace(/\?.*/, ''));
    await client.connect();
    await client.query(version1.join(';')).finally(() => client.end());
  },
  async MariaDB(url) {
    const { hostname, port, pathname } = new URL(url);
    const client = await mysql.createConnection({
      host: hostname,
      port: Number(port),
      user: 'root',
      database: pathname.slice(1),
    });
    for (const sql of version1) await client.query(sql);
    await client.end();
  },
};

/** A database of version 1 takes and returns what has no extras, and refuses the rest until it is migrated. */
async function isOfVersion1(history: History, migrate: () => Promise<void>): Promise<void> {
  const conversationId = unique('conv');
  const [plain, extended] = [1, 2].map((seq) =>
    message({ id: unique('msg'), conversationId, seq, extras: seq === 2 ? '{"a":1}' : null }),
  ) as [MessageRecord, MessageRecord];
  await history.write([plain]);
  await assert.rejects(history.write([extended]), { errorClass: 'refused' });
  assert.deepEqual((await history.read({ conversationId, limit: 5 })).data, [plain]);
  assert.deepEqual(await history.get(plain.id), plain);
  const report = await history.test();
  assert.deepEqual([report.ok, report.schemaVersion], [true, 1]);
  assert.match(report.warnings.join(), /extras/);
  await history.erase({ userId: 'alice', replacement: 'deleted:x', messages: 'delete' });
  assert.equal(await history.get(plain.id), null);
  await migrate();
  await history.write([extended]);
  assert.deepEqual(await history.get(extended.id), extended);
  assert.equal((await history.test()).schemaVersion, 2);
}

/** How many connections the writers that were made have to the server. */
const connectionsOf: Record<string, (url: string) => Promise<number>> = {
  async PostgreSQL(url) {
    const client = new pg.Client(url.replace(/\?.*/, ''));
    await client.connect();
    const { rows } = await client
      .query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename LIKE 'parley_writer%'`,
      )
      .finally(() => client.end());
    return rows[0]!.n;
  },
  async MariaDB(url) {
    const { hostname, port } = new URL(url);
    const client = await mysql.createConnection({ host: hostname, port: Number(port), user: 'root' });
    const [rows] = await client
      .query(`SELECT count(*) AS n FROM information_schema.processlist WHERE user LIKE 'parley_writer%'`)
      .finally(() => client.end());
    return Number((rows as unknown as { n: number }[])[0]!.n);
  },
};

for (const [name, start] of engines)
  describe(name, () => {
    const it = use(
      () => opened(start),
      async ({ history, server }) => {
        await history.close();
        await server.stop();
      },
    );
    const history = new Proxy({} as History, {
      get: (_, key) =>
        ((found: unknown) => (typeof found === 'function' ? (found.bind(it.history) as unknown) : found))(
          Reflect.get(it.history, key),
        ),
    });
    passes(history);

    test('a test reports version, user, grants and round trip, and that nothing was encrypted', async () => {
      const report = await history.test();
      assert.deepEqual([report.ok, report.errors], [true, []]);
      assert.ok(report.version && report.rttMs! >= 0 && report.databaseId);
      assert.deepEqual([report.schemaVersion, report.tls], [2, { enabled: false, verified: false }]);
      assert.ok(report.warnings.some((w) => w.includes('not encrypted')));
      assert.ok(!report.warnings.some((w) => w.includes('DROP')), 'the writer cannot drop');
    });

    if (name in connectionsOf)
      test('many requests at once share four connections', async () => {
        await Promise.all(Array.from({ length: 40 }, () => history.get('msg_x')));
        const open = await connectionsOf[name]!(it.admin);
        assert.ok(open > 0 && open <= 4, `${open}`);
      });

    if (name in limitedAdmins)
      test('an admin is told that it can DROP; one that may make no users gets notes instead of a writer', async () => {
        const admin = await openHistory({ url: it.admin }, deps('env_a'));
        assert.ok((await admin.test()).warnings.some((w) => w.includes('DROP')));
        await admin.close();
        const url = await it.server.createDatabase();
        await limitedAdmins[name]!(url);
        const { runtimeUrl, notes } = await migrateHistory(
          { url: url.replace(/\/\/[^@]*@/, '//limited:limited@') },
          deps('env_a'),
        );
        assert.equal(runtimeUrl, null);
        assert.match(
          notes.join(),
          /Make a user by hand.*GRANT .*INSERT.*parley_messages.* TO .*parley_writer/s,
        );
      });

    if (name in makeOld)
      test('tables of version 1 are used without extras, and migrating adds them', async () => {
        const url = await it.server.createDatabase();
        await migrateHistory({ url }, deps('env_a'));
        await makeOld[name]!(url);
        const old = await openHistory({ url }, deps('env_a'));
        try {
          await isOfVersion1(old, async () => void (await migrateHistory({ url }, deps('env_a'))));
        } finally {
          await old.close();
        }
      });

    if (name === 'MariaDB')
      test('what was confirmed is committed, also where the server’s default is to wait for a commit', async () => {
        const { hostname, port } = new URL(it.admin);
        const root = await mysql.createConnection({ host: hostname, port: Number(port), user: 'root' });
        await root.query('SET GLOBAL autocommit = 0');
        try {
          const writer = await openHistory(it.source, deps('env_c'));
          await writer.write([message({ id: 'msg_c', conversationId: 'conv_c', seq: 1 })]);
          await writer.close();
        } finally {
          await root.query('SET GLOBAL autocommit = 1');
          await root.end();
        }
        const reader = await openHistory(it.source, deps('env_c'));
        assert.deepEqual(await allSeqs(reader, 'conv_c'), [1]);
        await reader.close();
      });

    test('migrating twice makes another writer of the same database, and environments do not meet', async () => {
      const again = await migrateHistory({ url: it.admin }, deps('env_b'));
      const other = await openHistory({ url: again.runtimeUrl ?? it.admin }, deps('env_b'));
      try {
        assert.equal((await other.test()).databaseId, (await history.test()).databaseId);
        const here = message({ id: unique('msg'), conversationId: unique('conv'), seq: 1 });
        await history.write([here]);
        assert.equal(await other.get(here.id), null);
        assert.deepEqual(await allSeqs(other, here.conversationId), []);
        await other.write([{ ...here, seq: 2, text: 'there' }]);
        assert.deepEqual(await allSeqs(other, here.conversationId), [2]);
        assert.deepEqual(await history.get(here.id), here);
      } finally {
        await other.close();
      }
    });

    test('what is wrong is said without a word of the URL', async () => {
      const before = await openHistory({ url: await it.server.createDatabase() }, deps('env_a'));
      const empty = await before.test();
      await before.close();
      assert.deepEqual([empty.ok, empty.errors], [false, ['The tables are not there: migrate first.']]);
      const url = it.source.url
        .replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9')
        .replace(/\/\/[^@]*@/, '//someone:s3cr3t@');
      const gone = await openHistory({ url }, deps('env_a')).then(
        async (h) => {
          const report = await h.test();
          await h.close();
          return report.errors.join();
        },
        (error: HistoryError) => error.message,
      );
      assert.match(gone, /cannot be reached|did not answer/);
      assert.ok(!/s3cr3t|someone|127\.0/.test(gone), gone);
    });

    test('TLS is asked for and its certificate verified unless the URL says otherwise', async () => {
      const url = it.source.url.replace(/[?&](sslmode|ssl-mode|tls)=[^&]*/i, '');
      const report = await openHistory({ url }, deps('env_a')).then(
        async (h) => {
          const found = await h.test();
          await h.close();
          return found.errors.join();
        },
        (error: HistoryError) => error.message,
      );
      assert.notEqual(report, '', 'a server without TLS is not spoken to');
    });

    keepsTime(it, name in connectionsOf ? 'relational' : 'document');

    test('a database that dies and comes back is used again', async () => {
      const [first] = [unique('conv')];
      await it.server.kill();
      await assert.rejects(history.get('msg_x'), (error: HistoryError) =>
        ['unreachable', 'timeout', 'failed', 'overloaded'].includes(error.errorClass),
      );
      await it.server.start();
      for (let tries = 0; ; tries++)
        try {
          await checks[2]!.run(history, () => unique(first));
          break;
        } catch (error) {
          if (tries === 50) throw error;
        }
    });
  });

describe('http', () => {
  const it = use(
    async () => {
      const receiver = await startHistoryReceiver();
      return {
        receiver,
        source: { url: receiver.url, secrets: [receiver.secret] },
        history: await openHistory({ url: receiver.url, secrets: [receiver.secret] }, deps('env_a')),
      };
    },
    ({ receiver }) => receiver.close(),
  );
  const history = new Proxy({} as History, { get: (_, key) => Reflect.get(it.history, key) as unknown });
  passes(history);
  keepsTime(it, 'http');

  test('an endpoint of version 1 is used without extras', async () => {
    const receiver = await startHistoryReceiver();
    try {
      const old = await openHistory({ url: receiver.url, secrets: [receiver.secret] }, deps('env_a'));
      const { ping } = receiver.store;
      receiver.store.ping = () => ({ ok: true });
      await isOfVersion1(old, () => {
        receiver.store.ping = ping;
        return Promise.resolve();
      });
    } finally {
      await receiver.close();
    }
  });

  test('requests are signed: another secret is refused, one of two is enough', async () => {
    const other = `whsec_${randomBytes(32).toString('base64')}`;
    const wrong = await openHistory({ url: it.receiver.url, secrets: [other] }, deps('env_a'));
    assert.deepEqual((await wrong.test()).errors, ['The database refused the user or the password (401).']);
    const both = await openHistory(
      { url: it.receiver.url, secrets: [other, it.receiver.secret] },
      deps('env_a'),
    );
    assert.equal((await both.test()).ok, true);
  });
});

test('a certificate is verified by the authority that the URL gives, and by nothing less', async () => {
  const server = await startPostgresWithTls();
  try {
    const plain = await server.createDatabase();
    await migrateHistory({ url: plain }, deps('env_a'));
    const tried = async (options: string) => {
      const history = await openHistory({ url: plain.replace('?sslmode=disable', options) }, deps('env_a'));
      const { ok, tls, errors } = await history.test();
      await history.close();
      return { ok, tls, errors };
    };
    assert.deepEqual(await tried(`?ca=${encodeURIComponent(server.ca)}`), {
      ok: true,
      tls: { enabled: true, verified: true },
      errors: [],
    });
    assert.deepEqual((await tried('?sslmode=require')).tls, { enabled: true, verified: false });
    const unknown = await tried('');
    assert.equal(unknown.ok, false);
    assert.match(unknown.errors.join(), /TLS/);
    const other = plain
      .replace('127.0.0.1', 'localhost')
      .replace('?sslmode=disable', `?ca=${encodeURIComponent(server.ca)}`);
    const named = {
      ...deps('env_a'),
      outbound: createOutbound({
        allowPrivate: true,
        resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
      }),
    };
    const wrong = await openHistory({ url: other }, named);
    assert.match((await wrong.test()).errors.join(), /TLS/, 'the certificate is not for this name');
    await wrong.close();
  } finally {
    await server.stop();
  }
});

test('customers can check their own endpoint from the command line', async () => {
  const receiver = await startHistoryReceiver();
  const cli = new URL('../../src/cli.ts', import.meta.url).pathname;
  const check = (secret: string) =>
    promisify(execFile)(process.execPath, [cli, 'history', 'check', receiver.url], {
      env: { HISTORY_SECRET: secret },
    });
  try {
    const { stdout } = await check(receiver.secret);
    assert.match(stdout, new RegExp(`${checks.length} passed, 0 failed`));
    await assert.rejects(check('whsec_eHh4'), { code: 1 });
  } finally {
    await receiver.close();
  }
});

test('private addresses are refused before anything is sent', async () => {
  const guarded = { ...deps('env_a'), outbound: createOutbound({ allowPrivate: false }) };
  for (const url of [
    'postgres://u:p@127.0.0.1/x',
    'mysql://u:p@10.0.0.1/x',
    'mongodb://u:p@169.254.169.254/x',
    'postgres://u:p@[::1]/x',
  ])
    await assert.rejects(openHistory({ url }, guarded), { name: 'HistoryError', errorClass: 'unreachable' });
  const http = await openHistory({ url: 'https://127.0.0.1/x', secrets: ['whsec_eA=='] }, guarded);
  assert.equal((await http.test()).ok, false);
});

test('a URL is taken apart here, and nothing of it that is not known reaches a driver', async () => {
  for (const url of [
    'postgres://u:p@h/db?sslcert=/etc/passwd',
    'postgres://u:p@h/db?host=/var/run',
    'mysql://u:p@h/db?infileStreamFactory=x',
    'mongodb://u:p@h/db?proxyHost=x',
    'mongodb+srv://u:p@h/db',
    'postgres://u:p@h',
    'postgres://u:p@h1,h2/db',
    'redis://h/0',
    'postgres://u:p@h/db\n',
  ])
    await assert.rejects(openHistory({ url }, deps('env_a')), { name: 'TargetError' }, url);
  await assert.rejects(openHistory({ url: 'postgres://u:p@h/db', type: 'mysql' }, deps('env_a')), {
    name: 'TargetError',
  });
  await assert.rejects(openHistory({ url: 'postgres://u:p@h/db', schema: 'a"b' }, deps('env_a')), {
    name: 'TargetError',
  });
});

test('shown URLs hold no secret', () => {
  assert.equal(
    maskUrl('postgres://u:p%40ss@h:1/db?sslmode=require&ca=QQ'),
    'postgres://u:***@h:1/db?sslmode=require&ca=***',
  );
  assert.equal(
    maskUrl('mongodb://u:p@h1,h2:3/db?authSource=admin'),
    'mongodb://u:***@h1,h2:3/db?authSource=admin',
  );
  assert.equal(maskUrl('https://h/x?token=abc&y'), 'https://h/x?token=***&y');
  assert.equal(maskUrl('mysql://h/db'), 'mysql://h/db');
});
