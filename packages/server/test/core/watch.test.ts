import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { watchConnections } from '../../src/platform/postgres/watch.ts';
import { startStoreProxy } from '../support/store-proxy.ts';
import { use } from '../support/use.ts';
import { outsidePostgres } from './tools.ts';

/** How long a dead connection to the store goes unnoticed, by the watch's own clock: the machine's speed does not matter. */

const postgres = use(outsidePostgres, (p) => p.dispose());
const proxy = use(
  () => startStoreProxy(postgres.connection as Parameters<typeof startStoreProxy>[0]),
  (p) => p.close(),
);

/** A watch whose looks are made by the test, and its clock. */
function watched() {
  const time = { ms: 0 };
  let every = 0;
  const dead: number[] = [];
  const watch = watchConnections({ connectionString: proxy.url }, (count) => dead.push(count), {
    monotonic: () => time.ms,
    every: (ms) => {
      every = ms;
      return () => undefined;
    },
    after: () => () => undefined,
  });
  const pass = async (): Promise<void> => {
    time.ms += every;
    await watch.look();
  };
  const connect = async (): Promise<pg.PoolClient> => {
    const client = new pg.Client({ connectionString: proxy.url });
    client.on('error', () => undefined);
    await client.connect();
    watch.opened(client, (client as unknown as { processID: number }).processID);
    return client as unknown as pg.PoolClient;
  };
  return { time, dead, watch, pass, connect };
}

test('a connection that carries nothing any more is destroyed within 6 s, and the others of its age are suspects', async () => {
  const { time, dead, watch, pass, connect } = watched();
  const [silent, sibling] = [await connect(), await connect()];
  await watch.run(silent, () => silent.query('SELECT 1'));
  proxy.silence();
  const query = assert.rejects(watch.run(silent, () => silent.query('SELECT 2')));
  while (dead.length === 0) await pass();
  assert.ok(time.ms <= 6_000, `after ${time.ms} ms`);
  await query;
  assert.ok(watch.isSuspect(sibling));
  time.ms += 1;
  const fresh = await connect();
  assert.ok(!watch.isSuspect(fresh));
  await watch.run(fresh, () => fresh.query('SELECT 3'));
  await (fresh as unknown as pg.Client).end();
});

test('a query that PostgreSQL is working on is left alone, however long it takes', async () => {
  const { time, dead, watch, pass, connect } = watched();
  const [slow, other] = [await connect(), await connect()];
  await other.query('SELECT pg_advisory_lock(1)');
  const query = watch.run(slow, () => slow.query('SELECT pg_advisory_lock(1)'));
  while (time.ms < 30_000) await pass();
  assert.deepEqual(dead, []);
  await other.query('SELECT pg_advisory_unlock(1)');
  await query;
  for (const client of [slow, other]) await (client as unknown as pg.Client).end();
});
