import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ApiError } from '@parley/protocol';
import { PgDb } from '../../src/platform/postgres/db.ts';
import type { Db } from '../../src/platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded/index.ts';
import { isUnavailable } from '../../src/platform/postgres/errors.ts';

const problems: { message: string; what: string }[] = [];
let dataDir: string;
let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let db: PgDb;

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-tx-'));
  postgres = await startEmbeddedPostgres({ dataDir, log: () => undefined });
  db = new PgDb(postgres.connection, {
    max: 4,
    onError: ({ message }, what) => problems.push({ message, what }),
    // Long enough for a busy machine, and shorter than the statement that is cancelled for it.
    settings: { lock_timeout: '100', statement_timeout: '3000' },
  });
  await db.query('CREATE TABLE things (no int PRIMARY KEY)');
  await db.query('INSERT INTO things VALUES (1)');
});
after(async () => {
  await db.close();
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const busy = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'service_unavailable' && error.retryAfterMs! > 0;

test('an afterCommit that throws leaves the result, the others and the connection as they are', async () => {
  const ran: string[] = [];
  const result = await db.tx(async (tx) => {
    await tx.query('INSERT INTO things VALUES (2)');
    tx.afterCommit(() => ran.push('first'));
    tx.afterCommit(() => {
      throw new Error('a follower failed');
    });
    tx.afterCommit(() => ran.push('third'));
    return 'committed';
  });
  assert.equal(result, 'committed');
  assert.deepEqual(ran, ['first', 'third']);
  assert.deepEqual(problems, [{ message: 'a follower failed', what: 'what follows a commit failed' }]);
  assert.equal((await db.query('SELECT 1 FROM things WHERE no = 2')).length, 1);
  assert.equal(db.pool.idleCount, db.pool.totalCount);
});

test('waiting too long for a lock is service_unavailable, in a transaction and outside', async () => {
  const update = (on: Pick<Db, 'query'>) => on.query('UPDATE things SET no = no WHERE no = 1');
  await db.tx(async (holder) => {
    await holder.query('SELECT 1 FROM things WHERE no = 1 FOR UPDATE');
    await assert.rejects(update(db), busy);
    await assert.rejects(
      db.tx((tx) => update(tx)),
      busy,
    );
  });
  await update(db);
});

test('a statement that was cancelled for taking too long is service_unavailable', async () => {
  await assert.rejects(db.query('SELECT pg_sleep(5)'), busy);
});

test('the class of an error decides whether the caller may try again', () => {
  const passing = ['08006', '40P01', '40001', '53300', '53100', '57014', '57P01', '57P03', '55P03', '25P03'];
  for (const code of passing) assert.ok(isUnavailable({ code }), code);
  const final = ['22021', '23505', '23503', '42601', '42P01', '25P02', 'P0001', 'XX000', '55000'];
  for (const code of final) assert.ok(!isUnavailable({ code }), code);
});

test('a process that stands still inside a transaction loses what it holds within seconds', async () => {
  const other = new PgDb(postgres.connection, { max: 1, onError: () => undefined });
  const [holds, had] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const frozen = db.tx(async (tx) => {
    await tx.query('SELECT 1 FROM things WHERE no = 1 FOR UPDATE');
    holds.resolve();
    await had.promise;
    await tx.query('SELECT 1');
  });
  const lost = assert.rejects(frozen, busy);
  await holds.promise;
  // Its lock time-out is 5 s, as is the time that a silent transaction has.
  for (let tries = 1; ; tries++)
    try {
      await other.query('UPDATE things SET no = no WHERE no = 1');
      break;
    } catch (error) {
      assert.ok(tries < 5, String(error));
    }
  had.resolve();
  await lost;
  await other.close();
});
