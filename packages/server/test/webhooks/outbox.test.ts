import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { consumers } from '../../src/log/sql/consumers.ts';
import { createOutbox } from '../../src/platform/jobs/outbox.ts';
import { emit } from '../../src/platform/jobs/sql/outbox.ts';
import type { Consumer } from '../../src/platform/jobs/outbox.ts';
import type { OutboxRow } from '../../src/platform/jobs/sql/outbox.ts';
import { createWorkSignal } from '../../src/platform/jobs/wake.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate, readSchema } from '../../src/platform/postgres/migrate.ts';
import { outsidePostgres } from '../core/tools.ts';
import type { OutsidePostgres } from '../core/tools.ts';

let postgres: OutsidePostgres;
let db: PgDb;
let env: number;
let deaf: number;
before(async () => {
  postgres = await outsidePostgres();
  db = new PgDb(postgres.connection, { max: 4, onError: () => undefined });
  await migrate(postgres.connection);
  await db.query(`INSERT INTO organizations (id, name) VALUES ('org_a', 'a')`);
  const rows = await db.query<{ no: number }>(
    `INSERT INTO environments (id, org, name, kind, listeners)
     SELECT 'env_' || l, o.no, 'a', 'development', l FROM organizations o, unnest(ARRAY[1, 0]) l RETURNING no`,
  );
  [env, deaf] = rows.map((r) => r.no) as [number, number];
});
after(async () => {
  await db.close();
  await postgres.dispose();
});

const logger = createLogger('silent');

test('Where nobody listens nothing is noted', async () => {
  await emit(db, consumers.webhooks.bit, { env: deaf, type: 'user.deleted' });
  assert.deepEqual(await db.query('SELECT 1 FROM outbox'), []);
});

/** Rows 0 to 19 for a consumer, the eighth of them bad. */
const fill = (bit: number, age = '0 seconds'): Promise<unknown> =>
  db.query(
    `INSERT INTO outbox (consumer, id, env, type, data, created_at, due_at)
     SELECT $2, 'evt_' || i, $1, CASE i WHEN 7 THEN 'bad' ELSE 'good' END, json_build_object('i', i), now() - $3::interval, now()
     FROM generate_series(0, 19) i`,
    [env, bit, age],
  );
const numberOf = (row: OutboxRow) => (JSON.parse(row.data!) as { i: number }).i;
const all = Array.from({ length: 20 }, (_, i) => i);

/** A consumer that keeps what it took once that was committed. */
function keeping(bit: number, enough: number, refuse: (row: OutboxRow) => boolean = () => false) {
  const seen: number[] = [];
  let finish!: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const consumer: Consumer = {
    name: `consumer ${bit}`,
    bit,
    db,
    take: (tx, rows) => {
      if (rows.some(refuse)) return Promise.reject(new Error('no'));
      tx.afterCommit(() => {
        seen.push(...rows.map(numberOf));
        if (seen.length >= enough) finish();
      });
      return Promise.resolve();
    },
  };
  return { consumer, seen, done };
}

const outboxOf = (...consumers: Consumer[]) =>
  createOutbox({
    consumers,
    work: createWorkSignal({ db, connection: postgres.connection, logger }),
    logger,
    pollMs: 50,
  });

test('A row that its consumer cannot take is put off alone, and given up after three days', async () => {
  await fill(1);
  const first = keeping(1, 19, (r) => r.type === 'bad');
  const outbox = outboxOf(first.consumer);
  outbox.start();
  await first.done;
  await outbox.stop();
  assert.deepEqual(
    first.seen,
    all.filter((i) => i !== 7),
  );
  const left = await db.query<{ type: string; later: boolean }>(
    "SELECT type, due_at > now() + interval '30 seconds' AS later FROM outbox",
  );
  assert.deepEqual(left, [{ type: 'bad', later: true }]);
  await db.query("UPDATE outbox SET due_at = now(), created_at = now() - interval '73 hours'");
  const again = outboxOf(keeping(1, 1, () => true).consumer);
  again.start();
  while ((await db.query('SELECT 1 FROM outbox')).length > 0);
  await again.stop();
});

test('Each consumer has its own rows: one that always fails, and one that hangs, hold up no other', async () => {
  for (const bit of [1, 2, 8]) await fill(bit);
  let hanging!: () => void;
  const hung = new Promise<void>((resolve) => (hanging = resolve));
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const well = keeping(8, 20);
  const outbox = outboxOf(
    { ...keeping(1, 20).consumer, take: () => Promise.reject(new Error('always')) },
    {
      ...keeping(2, 20).consumer,
      take: () => {
        hanging();
        return released;
      },
    },
    well.consumer,
  );
  outbox.start();
  await Promise.all([well.done, hung]);
  assert.deepEqual(well.seen, all);
  // What comes while the one fails and the other hangs is taken too.
  await fill(8);
  while (well.seen.length < 40) await new Promise((resolve) => setImmediate(resolve));
  const left = await db.query<{ consumer: number; n: number }>(
    'SELECT consumer, count(*) AS n FROM outbox GROUP BY 1 ORDER BY 1',
  );
  assert.deepEqual(left, [
    { consumer: 1, n: 20 },
    { consumer: 2, n: 20 },
  ]);
  release();
  await outbox.stop();
  // The one that failed goes on where it was, once it can.
  await db.query('UPDATE outbox SET due_at = now()');
  const mended = keeping(1, 20);
  const second = outboxOf(mended.consumer);
  second.start();
  await mended.done;
  await second.stop();
  assert.deepEqual(
    mended.seen.sort((a, b) => a - b),
    all,
  );
  await db.query('DELETE FROM outbox');
});

test('Who works hears of work by its subject, from processes where nobody works', async () => {
  const heard: string[] = [];
  let next!: () => void;
  const working = createWorkSignal({ db, connection: postgres.connection, logger });
  const connected = new Promise<void>((resolve) => (next = resolve));
  for (const subject of ['one', 'two'])
    working.on(subject, () => {
      heard.push(subject);
      next();
    });
  working.start();
  // At the start everybody looks once.
  await connected;
  heard.length = 0;
  const elsewhere = createWorkSignal({ db, connection: postgres.connection, logger });
  const told = new Promise<void>((resolve) => (next = resolve));
  const keep = setInterval(() => undefined, 1_000);
  elsewhere.raise('two');
  await told;
  assert.deepEqual(heard, ['two']);
  clearInterval(keep);
  await Promise.all([working.stop(), elsewhere.stop()]);
});

test('What is raised is gathered, and the last time is always followed by a notice', async () => {
  let runs = 0;
  let ran!: () => void;
  const next = () => new Promise<void>((resolve) => (ran = resolve));
  const query = () => {
    runs++;
    ran();
    return Promise.resolve([]);
  };
  const work = createWorkSignal({ db: { query }, connection: postgres.connection, logger });
  const call = () => work.raise('subject');
  const keep = setInterval(() => undefined, 1_000);
  const first = next();
  for (let i = 0; i < 100; i++) call();
  await first;
  assert.equal(runs, 1);
  const second = next();
  call();
  await second;
  assert.equal(runs, 2);
  clearInterval(keep);
});

test('What waited in a store with one queue for all is told to each that listens', async () => {
  const old = await outsidePostgres();
  const oldDb = new PgDb(old.connection, { max: 1, onError: () => undefined });
  try {
    const schema = await readSchema();
    // 0070 needs what 0013 makes.
    const before = schema.migrations.filter(({ name }) => !/\/(0012|0013|0070)_/.test(name));
    await migrate(old.connection, { migrations: before, functions: [] });
    await oldDb.query(`INSERT INTO organizations (id, name) VALUES ('org_a', 'a')`);
    await oldDb.query(
      `INSERT INTO environments (id, org, name, kind, listeners, settings)
       SELECT 'env_' || l, o.no, 'a', 'development', l, CASE l WHEN 5 THEN '{"pushMode": "webhook"}' ELSE '{}' END::jsonb
       FROM organizations o, unnest(ARRAY[1, 2, 3, 5]) l`,
    );
    await oldDb.query(
      `INSERT INTO webhook_endpoints (env, id, url, events)
       SELECT no, 'wh_1', 'https://example.com', '{notification.needed}' FROM environments WHERE listeners = 5`,
    );
    await oldDb.query(
      `INSERT INTO outbox (id, env, type, created_at, due_at) SELECT 'evt_' || t, no, t, now(), now()
       FROM environments, unnest('{message.created,message.updated}'::text[]) t`,
    );
    await migrate(old.connection, schema);
    const rows = await oldDb.query<{ env: string; told: string }>(
      `SELECT e.id AS env, string_agg(consumer || ' ' || type, ', ' ORDER BY consumer, type) AS told
       FROM outbox o JOIN environments e ON e.no = o.env GROUP BY 1 ORDER BY 1`,
    );
    assert.deepEqual(rows, [
      { env: 'env_1', told: '1 message.created, 1 message.updated' },
      { env: 'env_2', told: '2 message.created' },
      { env: 'env_3', told: '1 message.created, 1 message.updated, 2 message.created' },
      { env: 'env_5', told: '1 message.created, 1 message.updated, 2 message.created' },
    ]);
  } finally {
    await oldDb.close();
    await old.dispose();
  }
});
