import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ApiError } from '@parley/protocol';
import type { Caller, HttpContext } from '../../src/features/context.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded/index.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { createVault } from '../../src/platform/secrets.ts';
import { Idempotency } from '../../src/transport/rest/idempotency.ts';
import type { Manner } from '../../src/transport/rest/idempotency.ts';

/** The store is real; the plan is so small that a few answers fill it, and the clock stands still. */

let dataDir: string;
let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let db: PgDb;
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-room-'));
  postgres = await startEmbeddedPostgres({ dataDir, log: () => undefined });
  db = new PgDb(postgres.connection, { max: 4, onError: () => undefined });
  await migrate(postgres.connection);
});
after(async () => {
  await db.close();
  await postgres.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const atOnce = (repeatable: boolean): Manner => ({
  repeatable,
  turn: (work) => work(),
  briefly: (work) => work(),
});

const hourKb = 36;
function scene() {
  const time = { at: 1_700_000_000_000, now: () => time.at };
  const idempotency = new Idempotency(memoryRateLimiter(time));
  const services = {
    vault: createVault(Buffer.alloc(32, 1)),
    plans: { free: { secretKey: { perSecond: hourKb / 3_600, burst: 1 } } },
  };
  let runs = 0;
  const answer = { status: 201, body: { blob: 'x'.repeat(10_000) } };
  /** One keyed request whose answer takes about 10 KB. */
  const request = (key: string, caller: Partial<Caller> = {}, env = 1, repeatable = false) =>
    idempotency.run(
      {
        caller: { kind: 'server', user: null, person: null, ...caller },
        env: { no: env, plan: 'free' },
        db,
        services,
        requestId: 'req_x',
      } as unknown as HttpContext,
      { key, route: 'POST /v1/things', body: null },
      () => {
        runs += 1;
        return Promise.resolve(answer);
      },
      atOnce(repeatable),
    );
  return { time, request, runs: () => runs };
}

const rows = (key: string) => db.query('SELECT 1 FROM idempotency WHERE key = $1', [key]);
const full = (error: unknown): boolean =>
  error instanceof ApiError && error.row.http === 429 && error.retryAfterMs! > 0;

for (const [name, repeatable] of [
  ['inside the transaction', false],
  ['before it', true],
] as const)
  test(`a full environment refuses new keys before they run, and still replays the old ones (operations that run ${name})`, async () => {
    const { time, request, runs } = scene();
    const env = repeatable ? 2 : 1;
    const send = (key: string) => request(key, {}, env, repeatable);
    let stored = 0;
    let refused: ApiError | undefined;
    while (!refused && stored < 20)
      await send(`${name} ${stored}`).then(
        () => (stored += 1),
        (error: ApiError) => (refused = error),
      );
    assert.ok(full(refused));
    assert.ok(
      stored >= hourKb / 11 && stored <= hourKb / 10 + 1,
      `${stored} answers of 10 KB in ${hourKb} KB`,
    );
    assert.equal(runs(), stored, 'what is refused did not run');
    assert.equal((await rows(`${name} ${stored}`)).length, 0, 'and did not use up its key');
    assert.equal((await send(`${name} 0`)).replayed, true);
    assert.equal(
      (await request('elsewhere', {}, env + 10)).replayed,
      false,
      'another environment has its own room',
    );

    time.at += refused!.retryAfterMs!;
    assert.equal((await send(`${name} ${stored}`)).replayed, false);
    await assert.rejects(send(`${name} more`), full);
  });

test('clients fill the room of clients, never that of their server', async () => {
  const { request } = scene();
  const client = (no: number) => ({ kind: 'client', user: { no, id: `u${no}` } }) as Partial<Caller>;
  await assert.rejects(async () => {
    for (let i = 0; i < 20; i++) await request(`client ${i}`, client(i), 3);
  }, full);
  assert.equal((await request('of the server', {}, 3)).replayed, false);
});

test('where no environment is concerned, a key is the account’s own', async () => {
  const idempotency = new Idempotency(memoryRateLimiter({ now: () => 1_700_000_000_000 }));
  const services = { vault: createVault(Buffer.alloc(32, 1)) };
  const as = (account: number) =>
    idempotency.run(
      {
        caller: { kind: 'dashboard', person: { account: { no: account } } },
        db,
        services,
        requestId: 'req_x',
      } as unknown as HttpContext,
      { key: 'shared', route: 'POST /v1/environments', body: null },
      () => Promise.resolve({ status: 201, body: { account } }),
      atOnce(false),
    );
  assert.deepEqual(await as(1), { status: 201, body: { account: 1 }, replayed: false });
  assert.deepEqual(await as(2), { status: 201, body: { account: 2 }, replayed: false });
  assert.deepEqual(await as(1), { status: 201, body: { account: 1 }, replayed: true });
});
