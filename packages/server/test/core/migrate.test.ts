import assert from 'node:assert/strict';
import { randomBytes, scryptSync } from 'node:crypto';
import { after, before, test } from 'node:test';
import pg from 'pg';
import type { AccountSession, Conversation, Message } from '@parley/protocol';
import { PgDb } from '../../src/platform/postgres/db.ts';
import type { ConnectionSettings, Queryable } from '../../src/platform/postgres/db.ts';
import { migrate, migrationCheck, readSchema } from '../../src/platform/postgres/migrate.ts';
import type { Schema, SqlFile } from '../../src/platform/postgres/migrate.ts';
import { version } from '../../src/platform/version.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { createApi } from '../support/api.ts';
import { environments, startService } from '../support/service.ts';
import { allEvents, outsidePostgres, times } from './tools.ts';
import type { OutsidePostgres } from './tools.ts';

/** How a store comes to its present form, and that it loses nothing on the way. */

let postgres: OutsidePostgres;
let admin: PgDb;
let made = 0;
before(async () => {
  postgres = await outsidePostgres();
  admin = new PgDb(postgres.connection, { max: 1, onError: () => undefined });
});
after(async () => {
  await admin?.close();
  await postgres?.dispose();
});

interface Store {
  connection: ConnectionSettings;
  db: PgDb;
  url: string;
}
/** A database of its own, for the time of the test. */
async function inStore(run: (store: Store) => Promise<void>): Promise<void> {
  const database = `store${++made}`;
  await admin.query(`CREATE DATABASE ${database}`);
  const connection = { ...postgres.connection, database } as ConnectionSettings;
  const db = new PgDb(connection, { max: 3, onError: () => undefined });
  const url = new URL(postgres.url);
  url.pathname = `/${database}`;
  try {
    await run({ connection, db, url: url.href });
  } finally {
    await db.close();
  }
}

const migration = (version: number, sql: string): SqlFile => ({
  name: `migrations/${String(version).padStart(4, '0')}_test.sql`,
  sql,
});
const schema = (migrations: string[], functions: string[] = []): Schema => ({
  migrations: migrations.map((sql, i) => migration(i + 1, sql)),
  functions: functions.map((sql, i) => ({ name: `src/sql/${i}.sql`, sql })),
});
const answerOf = async (db: Queryable): Promise<number> =>
  (await db.query<{ answer: number }>('SELECT answer() AS answer'))[0]!.answer;
const tablesOf = async (db: Queryable): Promise<string[]> =>
  (
    await db.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
       AND relname NOT LIKE 'schema%' ORDER BY 1`,
    )
  ).map((r) => r.name);

test('a new store is made once, by one of the processes that start together', () =>
  inStore(async ({ connection, db }) => {
    const applied = await Promise.all(times(4, () => migrate(connection)));
    assert.deepEqual(applied.flat(), ['schema.sql', 'functions'], 'npm run schema writes schema.sql anew');
    assert.deepEqual(await migrate(connection), []);
    assert.equal(await migrationCheck(db)(), null);
  }));

/** What PostgreSQL knows of a store, without the days of partitioned tables. */
async function catalogue(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ line: string }>(`
    WITH ours AS (
      SELECT * FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname !~ '_[0-9]{8}' AND relname NOT LIKE 'schema%'
    )
    SELECT concat_ws(' ', relkind, relname, relpersistence, reloptions::text, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid)) AS line FROM ours
    UNION ALL SELECT concat_ws(' ', c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod),
        a.attcollation::regcollation, a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, a.attcompression, a.attoptions::text, pg_get_expr(d.adbin, d.adrelid))
      FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT concat_ws(' ', c.relname, o.conname, o.convalidated, o.condeferrable, pg_get_constraintdef(o.oid))
      FROM ours c JOIN pg_constraint o ON o.conrelid = c.oid AND o.contype <> 'n'
    UNION ALL SELECT concat_ws(' ', i.indisvalid, i.indisreplident, i.indisclustered, pg_get_indexdef(i.indexrelid))
      FROM ours c JOIN pg_index i ON i.indexrelid = c.oid
    UNION ALL SELECT concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid)) FROM ours c JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
    UNION ALL SELECT concat_ws(' ', c.relname, to_jsonb(s) - 'seqrelid') FROM ours c JOIN pg_sequence s ON s.seqrelid = c.oid
    UNION ALL SELECT concat_ws(' ', p.oid::regprocedure, pg_get_function_result(p.oid), p.prokind, p.provolatile, p.proisstrict, p.proconfig::text, p.prosrc, g.agginitval)
      FROM pg_proc p LEFT JOIN pg_aggregate g ON g.aggfnoid = p.oid WHERE p.pronamespace = 'public'::regnamespace`);
  const lines = rows.map((row) => row.line);
  for (const name of await tablesOf(db)) {
    const [count] = await db.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${name}`);
    if (!/_\d{8}$/.test(name)) lines.push(`${name} rows ${count!.n}`);
  }
  return lines.sort();
}

test('a store made from schema.sql is the same as one made by all migrations', () =>
  inStore((one) =>
    inStore(async (other) => {
      const { migrations, functions } = await readSchema();
      await migrate(one.connection, { migrations, functions });
      await migrate(other.connection);
      const [migrated, made] = [new Set(await catalogue(one.db)), new Set(await catalogue(other.db))];
      assert.ok(made.size > 1_000, `${made.size} lines`);
      assert.deepEqual([...migrated.symmetricDifference(made)], []);
    }),
  ));

test('a migration takes as long as it takes, whatever time-out the role has', () =>
  inStore(async ({ connection, db }) => {
    await db.query(`ALTER DATABASE ${connection.database} SET statement_timeout = 50`);
    assert.equal((await migrate(connection, schema(['SELECT pg_sleep(0.2)']))).length, 2);
  }));

test('a migration that fails leaves nothing of itself, and what came before it stays', () =>
  inStore(async ({ connection, db }) => {
    await assert.rejects(
      migrate(connection, schema(['CREATE TABLE a ()', 'CREATE TABLE b (); SELECT 1 / 0'])),
      /division by zero/,
    );
    assert.deepEqual(await tablesOf(db), ['a']);
    await migrate(connection, schema(['CREATE TABLE a ()', 'CREATE TABLE b ()']));
    assert.deepEqual(await tablesOf(db), ['a', 'b']);
  }));

test('“-- no transaction”: an index is built concurrently, also while another process waits to start', () =>
  inStore(async ({ connection, db }) => {
    const files = schema([
      'CREATE TABLE a (n int)',
      '-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a_n ON a (n);\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a_n2 ON a (n);\n',
    ]);
    let starters: Promise<string[]>[] = [];
    await db.tx(async (tx) => {
      await tx.query('SELECT 1');
      await migrate(connection, { ...files, migrations: files.migrations.slice(0, 1) });
      // An open transaction that wrote holds the index back for as long as it lives.
      await tx.query('INSERT INTO a VALUES (1)');
      starters = times(2, () => migrate(connection, files));
      const building = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%CONCURRENTLY%' AND wait_event_type = 'Lock'`;
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND datname = $1 AND state = 'idle'`;
      while ((await admin.query(building)).length === 0) assert.ok(starters);
      while ((await admin.query(waiting, [connection.database])).length === 0) assert.ok(starters);
    });
    assert.deepEqual((await Promise.all(starters)).flat(), [files.migrations[1]!.name]);
    const indexes = await db.query<{ ok: boolean }>(
      `SELECT indisvalid AS ok FROM pg_index WHERE indrelid = 'a'::regclass`,
    );
    assert.deepEqual(
      indexes.map((i) => i.ok),
      [true, true],
    );
  }));

test('an applied migration whose text differs is refused by name, and nothing is changed', () =>
  inStore(async ({ connection, db }) => {
    await migrate(connection, schema(['CREATE TABLE a ()']));
    await assert.rejects(
      migrate(connection, schema(['CREATE TABLE a (n int)', 'CREATE TABLE b ()'])),
      /migrations\/0001_test\.sql was changed after it had been applied/,
    );
    assert.deepEqual(await tablesOf(db), ['a']);
  }));

test('a store from before checksums gets them at its first start, and is watched from then on', () =>
  inStore(async ({ connection, db }) => {
    await migrate(connection, schema(['CREATE TABLE a ()']));
    await db.query('ALTER TABLE schema_migrations DROP COLUMN checksum');
    await db.query('DROP TABLE schema_functions');
    assert.deepEqual(await migrate(connection, schema(['CREATE TABLE a ()'])), ['functions']);
    await assert.rejects(migrate(connection, schema(['CREATE TABLE a (n int)'])), /was changed/);
  }));

const beside = '-- runs beside earlier versions\nSELECT 1';
const answers = (n: number): string =>
  `CREATE OR REPLACE FUNCTION answer() RETURNS int LANGUAGE sql AS 'SELECT ${n}'`;

test('functions are applied again when their text changes, and only then', () =>
  inStore(async ({ connection, db }) => {
    const none = 'SELECT 1';
    assert.deepEqual(await migrate(connection, schema([none], [answers(1)])), [
      'migrations/0001_test.sql',
      'functions',
    ]);
    assert.deepEqual(await migrate(connection, schema([none], [answers(1)])), []);
    for (const n of [2, 1]) {
      assert.deepEqual(await migrate(connection, schema([none], [answers(n)])), ['functions']);
      assert.equal(await answerOf(db), n);
    }
    await assert.rejects(migrate(connection, schema([none], [answers(3), 'SELECT 1 / 0'])));
    assert.equal(await answerOf(db), 1, 'all of them or none');
    await migrate(connection, schema([none, beside], [answers(4)]));
    await migrate(connection, schema([none], [answers(1)]));
    assert.equal(await answerOf(db), 4, 'an older program leaves what a newer one applied');
  }));

test('/readyz: not current without a migration or without the functions, fine on a newer store that runs beside', () =>
  inStore(async ({ connection, db }) => {
    const files = await readSchema();
    const problem = migrationCheck(db);
    const missing = 'migrations are not current';
    await migrate(connection, { migrations: files.migrations.slice(0, -1), functions: [] });
    assert.equal(await problem(), missing, 'a migration is missing');
    await migrate(connection, { ...files, functions: [] });
    assert.equal(await problem(), missing, 'the functions are missing');
    await migrate(connection);
    assert.equal(await problem(), null);
    const newer = (...more: SqlFile[]) => ({
      migrations: [...files.migrations, ...more],
      functions: [{ name: 'newer', sql: answers(1) }],
    });
    await migrate(connection, newer(migration(9_998, beside)));
    assert.equal(await problem(), null);
    await migrate(connection, newer(migration(9_998, beside), migration(9_999, 'SELECT 1')), { force: true });
    assert.match(
      (await problem())!,
      /migrated by Parley \S+ \(9999_test\.sql\), and this is Parley \S+, which/,
    );
  }));

test('a store with a migration that the program does not know is refused with both versions, and nothing is changed', () =>
  inStore(async ({ connection, db }) => {
    await migrate(connection, schema(['CREATE TABLE a ()', 'CREATE TABLE b ()'], [answers(2)]));
    await db.query(`UPDATE schema_migrations SET program = '9.8.7'`);
    await assert.rejects(
      migrate(connection, schema(['CREATE TABLE a ()'], [answers(1)])),
      new RegExp(
        `migrated by Parley 9\\.8\\.7 \\(0002_test\\.sql\\), and this is Parley ${version}, which knows migrations up to 0001`,
      ),
    );
    assert.equal(await answerOf(db), 2);
    const gap = { migrations: [migration(1, 'CREATE TABLE a ()'), migration(3, 'CREATE TABLE c ()')] };
    await assert.rejects(migrate(connection, { ...gap, functions: [] }), /0002_test\.sql.*up to 0003/);
    assert.deepEqual(await tablesOf(db), ['a', 'b']);
  }));

/** A process of some version that uses the store, for as long as it is not ended. */
async function serving(connection: ConnectionSettings, name: string): Promise<pg.Client> {
  const client = new pg.Client({ ...connection, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

for (const name of ['parley', 'parley 0.0.9 schema 1'])
  test(`docs/cluster.md, Upgrading: a migration waits for “${name}” to end, and is refused if it does not`, () =>
    inStore(async ({ connection, db }) => {
      await migrate(connection, schema(['CREATE TABLE a ()']));
      const old = await serving(connection, name);
      const next = schema(['CREATE TABLE a ()', 'CREATE TABLE b ()']);
      const told: string[] = [];
      const onWait = (message: string) => told.push(message);
      await assert.rejects(migrate(connection, next, { waitMs: 0 }), (error: Error) => {
        assert.match(error.message, /earlier versions.*migration 0002.*--force/s);
        assert.ok(error.message.includes(`: ${name} (connections: 1)`), error.message);
        return true;
      });
      assert.deepEqual(await tablesOf(db), ['a']);
      const applied = migrate(connection, next, {
        onWait: (message) => {
          onWait(message);
          void old.end();
        },
      });
      assert.deepEqual(await applied, ['migrations/0002_test.sql']);
      assert.equal(told.length, 1);
    }));

test('docs/cluster.md, Upgrading: --force, and migrations that run beside earlier versions, wait for nobody', () =>
  inStore(async ({ connection }) => {
    const told: string[] = [];
    const options = { waitMs: 0, onWait: (message: string) => told.push(message) };
    await migrate(connection, schema(['SELECT 1']));
    const others = [
      await serving(connection, 'parley 0.0.9 schema 1'),
      await serving(connection, 'parley listen'),
    ];
    await migrate(connection, schema(['SELECT 1', beside]), options);
    await migrate(connection, schema(['SELECT 1', beside, 'SELECT 3']), { ...options, force: true });
    await others[0]!.end();
    const current = await serving(connection, 'parley 0.1.0 schema 4');
    await migrate(connection, schema(['SELECT 1', beside, 'SELECT 3', 'SELECT 4']), options);
    assert.deepEqual(told, []);
    for (const client of [others[1]!, current]) await client.end();
  }));

test('docs/cluster.md, Upgrading: a node that serves is found by a newer one, and is not ready once that has migrated', () =>
  inStore(async ({ connection, url }) => {
    const service = await startService({
      env: { DATABASE_URL: url, CHAT_MASTER_KEY: randomBytes(32).toString('base64') },
    });
    try {
      const files = await readSchema();
      const newer = { ...files, migrations: [...files.migrations, migration(9_999, 'SELECT 1')] };
      await assert.rejects(migrate(connection, newer, { waitMs: 0 }), /earlier versions.*parley .* schema/);
      assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
      await migrate(connection, newer, { force: true });
      // An answer of a moment ago is given again for a quarter of a second.
      let ready = await fetch(`${service.url}/readyz`);
      while (ready.status === 200) ready = await fetch(`${service.url}/readyz`);
      assert.equal(ready.status, 503);
      assert.match(((await ready.json()) as { reason: string }).reason, /9999_test\.sql.*this is Parley/);
    } finally {
      await service.dispose();
    }
  }));

/** A request that was answered before the upgrade, and its answer. */
const kept = {
  key: '8a1c8b7e-6a4e-4b0e-9d0b-3f3f5a0c1d2e',
  request: { type: 'group', members: ['ann', 'bob'] },
  answer: {
    id: 'conv_old',
    type: 'group',
    name: 'Old group',
    metadata: {},
    lastSeq: 1,
    createdAt: '2026-01-15T09:30:00.000Z',
    members: [{ userId: 'ann', role: 'member' }],
  },
};

/** What a service under the first schema has left behind: a group with 30 messages, of which one is deleted and some are read. */
async function fill(db: PgDb, masterKey: Buffer): Promise<void> {
  await db.query(`INSERT INTO organizations (id, name) VALUES ('org_old', 'Old')`);
  await db.query(
    `INSERT INTO environments (id, org, name, kind, plan)
     SELECT 'env_old', no, 'old', 'development', 'enterprise' FROM organizations`,
  );
  const { secretKey } = environments.dev;
  const keyId = secretKey.split('_')[2]!;
  await db.query('INSERT INTO secret_keys (id, env, secret) VALUES ($1, 1, $2)', [
    keyId,
    createVault(masterKey).seal(secretKey, `secret key ${keyId}`),
  ]);
  for (const [email, role] of [
    ['owner@example.com', 'owner'],
    ['member@example.com', 'member'],
  ]) {
    const salt = randomBytes(16);
    const hash = scryptSync('correct horse', salt, 32, { N: 16_384, r: 8, p: 1 });
    await db.query('INSERT INTO accounts (email, password_hash) VALUES ($1, $2)', [
      email,
      `scrypt$${salt.toString('base64')}$${hash.toString('base64')}`,
    ]);
    await db.query(
      `INSERT INTO organization_accounts (org, account, role) SELECT 1, no, $2 FROM accounts WHERE email = $1`,
      [email, role],
    );
  }
  await db.query(`INSERT INTO users (env, id, name) VALUES (1, 'ann', 'Ann'), (1, 'bob', 'Bob')`);
  await db.query(
    `INSERT INTO conversations (env, id, type, name, last_seq, message_count, last_message_seq, last_activity_at, act, created_at)
     VALUES (1, 'conv_old', 'group', 'Old group', 32, 29, 31, now() - interval '1 minute', 0, now() - interval '1 hour')`,
  );
  await db.query(
    `INSERT INTO members (env, conv, usr, role, last_read_seq, read_count, act, self_act, self_at)
     SELECT 1, 1, no, 'member', CASE id WHEN 'ann' THEN 31 ELSE 11 END, CASE id WHEN 'ann' THEN 29 ELSE 10 END, 0, 0, now() FROM users`,
  );
  await db.query(
    `INSERT INTO events (env, conv, seq, type, message, data, created_at)
     VALUES (1, 1, 1, 'conversation.created', NULL, NULL, now() - interval '1 hour'),
       (1, 1, 32, 'message.deleted', 20, '{"hard":false}', now() - interval '1 minute')`,
  );
  await db.query(
    `INSERT INTO messages (env, conv, seq, id, sender, text, created_at, deleted_at)
     SELECT 1, 1, s, 'msg_old' || s, (SELECT no FROM users WHERE id = 'ann'), CASE WHEN s <> 20 THEN 'old ' || s END,
       now() - interval '1 hour', CASE WHEN s = 20 THEN now() END
     FROM generate_series(2, 31) s`,
  );
  await db.query(
    `INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
     SELECT 1, 1, no, 'old-5', 5, now() FROM users WHERE id = 'ann'`,
  );
  // The form in which keys are kept: a version that cannot read it would act a second time.
  const vault = createVault(masterKey);
  await db.query(
    `INSERT INTO idempotency (env, key, route, fingerprint, status, body, subjects, created_at)
     VALUES (1, $1, $2, $3, 201, $4, '{}', now() - interval '1 hour')`,
    [
      kept.key,
      vault.mac('route POST /v1/conversations'),
      vault.mac(`request server\n${JSON.stringify(kept.request)}`),
      vault.seal(JSON.stringify(kept.answer), `idempotency 1 ${kept.key}`),
    ],
  );
}

for (const oldest of [1, 5])
  test(`a store filled under the schema up to ${oldest} is upgraded, and the service sends, reads and counts on it`, () =>
    inStore(async ({ connection, db, url }) => {
      const files = await readSchema();
      await migrate(connection, { migrations: files.migrations.slice(0, oldest), functions: [] });
      const masterKey = Buffer.alloc(32, 7);
      await fill(db, masterKey);
      const service = await startService({
        env: { DATABASE_URL: url, CHAT_MASTER_KEY: masterKey.toString('base64') },
      });
      try {
        const server = createApi(service.url, environments.dev.secretKey);
        const { body: token } = await server('POST', '/v1/tokens', { userId: 'bob' });
        const bob = createApi(service.url, (token as { token: string }).token);
        const unread = async (): Promise<number> =>
          ((await bob('GET', '/v1/conversations')).body as { data: { unreadCount: number }[] }).data[0]!
            .unreadCount;
        assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
        assert.equal(await unread(), 19);
        const sent = await server('POST', '/v1/conversations/conv_old/messages', {
          text: 'new',
          senderId: 'ann',
          replyTo: 'msg_old7',
        });
        assert.equal(sent.status, 201);
        assert.equal((sent.body as Message).seq, 33);
        const repeated = await server('POST', '/v1/conversations/conv_old/messages', {
          text: 'x',
          senderId: 'ann',
          clientMsgId: 'old-5',
        });
        assert.equal((repeated.body as Message).id, 'msg_old5');
        const key = { 'idempotency-key': kept.key };
        const replay = await server('POST', '/v1/conversations', kept.request, key);
        assert.equal(replay.headers.get('idempotent-replayed'), 'true');
        assert.deepEqual([replay.status, replay.body], [201, kept.answer]);
        assert.equal(await unread(), 20);
        const read = await bob('POST', '/v1/conversations/conv_old/read', { seq: 31 });
        assert.equal((read.body as { unreadCount: number }).unreadCount, 1);
        assert.equal((await server('DELETE', '/v1/messages/msg_old30?hard=true')).status, 204);
        assert.equal(await unread(), 1);
        assert.equal((await allEvents(server, 'conv_old')).at(-1)!.seq, 34);
        const conversation = (await server('GET', '/v1/conversations/conv_old')).body as Conversation;
        assert.equal(conversation.lastSeq, 34);
        for (const [email, role] of [
          ['owner@example.com', 'owner'],
          ['member@example.com', 'developer'],
        ]) {
          const signIn = () =>
            createApi(service.url, null)('POST', '/v1/session', { email, password: 'correct horse' });
          for (let i = 0; i < 2; i++) {
            const { status, body } = await signIn();
            assert.equal(status, 200);
            assert.equal((body as AccountSession).organizations[0]!.role, role);
          }
        }
        const hashes = await db.query<{ hash: string }>('SELECT password_hash AS hash FROM accounts');
        for (const { hash } of hashes) assert.match(hash, /^\$argon2id\$/);
      } finally {
        await service.dispose();
      }
    }));
