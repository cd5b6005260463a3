import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createDispatcher, emit } from '../../src/platform/jobs/outbox.ts';
import type { OutboxRow } from '../../src/platform/jobs/outbox.ts';
import { gathered } from '../../src/platform/jobs/wake.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
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
  await emit(db, { env: deaf, type: 'user.deleted' });
  assert.deepEqual(await db.query('SELECT 1 FROM outbox'), []);
});

test('Every row reaches every consumer once; one that cannot be handed out holds up no other', async () => {
  for (let i = 0; i < 20; i++) await emit(db, { env, type: i === 7 ? 'bad' : 'good', data: { i } });
  const seen: number[] = [];
  let finished!: () => void;
  const done = new Promise<void>((resolve) => (finished = resolve));
  const numberOf = (row: OutboxRow) => (JSON.parse(row.data!) as { i: number }).i;
  const dispatcher = createDispatcher({
    db,
    logger,
    dispatched: () => undefined,
    consumers: [
      (_, rows) => (rows.some((r) => r.type === 'bad') ? Promise.reject(new Error('no')) : Promise.resolve()),
      (tx, rows) => {
        tx.afterCommit(() => {
          seen.push(...rows.map(numberOf));
          if (seen.length === 19) finished();
        });
        return Promise.resolve();
      },
    ],
  });
  dispatcher.start();
  await done;
  await dispatcher.stop();
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => i).filter((i) => i !== 7),
  );
  const left = await db.query<{ type: string; later: boolean }>(
    "SELECT type, due_at > now() + interval '30 seconds' AS later FROM outbox",
  );
  assert.deepEqual(left, [{ type: 'bad', later: true }]);
});

test('Calls are gathered, and the last one is always followed by a run', async () => {
  let runs = 0;
  let ran!: () => void;
  const next = () => new Promise<void>((resolve) => (ran = resolve));
  const call = gathered(1, () => {
    runs++;
    ran();
  });
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
