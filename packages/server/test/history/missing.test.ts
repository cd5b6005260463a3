import assert from 'node:assert/strict';
import { test } from 'node:test';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { use, useService } from '../support/use.ts';
import { startCustomerMariadb, startCustomerPostgres, startHistoryReceiver } from './servers.ts';
import { eventually, fill, openStorage } from './world.ts';
import type { StorageWorld } from './world.ts';

/** docs/storage.md, "Reading": a message that its owner removed from the database is left out, also after history came back to us. */

const { service, scene, server, db } = useService();
const databases = use(
  async () => ({
    postgres: await startCustomerPostgres(),
    mariadb: await startCustomerMariadb(),
    receiver: await startHistoryReceiver(),
  }),
  ({ postgres, mariadb, receiver }) => Promise.all([postgres.stop(), mariadb.stop(), receiver.close()]),
);
const it = use(
  async () => ({ storage: await openStorage(service, db) }),
  () => undefined,
);

/** Connects a customer's database; what it returns removes messages there, and puts them back. */
type Connect = (storage: StorageWorld) => Promise<{
  remove(ids: string[]): Promise<unknown>;
  restore(ids: string[]): Promise<unknown>;
}>;

const hide = 'UPDATE parley_messages SET env = ';

const engines: Record<string, Connect> = {
  async PostgreSQL(storage) {
    const url = await databases.postgres.createDatabase();
    await storage.connect(url);
    const run = async (sql: string, ids: string[]) => {
      const client = new pg.Client(url.replace(/\?.*/, ''));
      await client.connect();
      await client.query(sql, [ids]).finally(() => client.end());
    };
    return {
      remove: (ids) => run(`${hide} 'elsewhere' WHERE id = ANY($1)`, ids),
      restore: (ids) => run(`${hide} 'env_dev' WHERE id = ANY($1)`, ids),
    };
  },
  async MariaDB(storage) {
    const url = await databases.mariadb.createDatabase();
    await storage.connect(url);
    const { hostname: host, port, username: user, pathname } = new URL(url);
    const run = async (sql: string, ids: string[]) => {
      const client = await mysql.createConnection({
        host,
        port: Number(port),
        user,
        database: pathname.slice(1),
      });
      await client.query(sql, [ids]).finally(() => client.end());
    };
    return {
      remove: (ids) => run(`${hide} 'elsewhere' WHERE id IN (?)`, ids),
      restore: (ids) => run(`${hide} 'env_dev' WHERE id IN (?)`, ids),
    };
  },
  async 'an http endpoint'(storage) {
    const { receiver } = databases;
    const put = await storage.api('PUT', '/v1/storage/database/a', { url: receiver.url });
    receiver.secret = put.body.signingSecret as string;
    assert.equal((await storage.api('POST', '/v1/storage/database/test', { slot: 'a' })).body.ok, true);
    assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
    await storage.settled();
    const { message } = receiver.store.environments.get('env_dev')!;
    const gone = new Map<string, Record<string, unknown>>();
    return {
      remove: (ids) =>
        Promise.resolve(
          ids.forEach((id) => {
            gone.set(id, message.get(id)!);
            message.delete(id);
          }),
        ),
      restore: (ids) => Promise.resolve(ids.forEach((id) => message.set(id, gone.get(id)!))),
    };
  },
};

for (const [name, connect] of Object.entries(engines))
  test(`${name}: what the customer removed is left out after the switch to managed, and the switch says so`, async () => {
    const { storage } = it;
    const there = await connect(storage);
    const { id: cid } = await scene.group(await scene.actor(), []);
    const sent: { id: string; seq: number }[] = [];
    for (let i = 0; i < 60; i++) sent.push(await scene.send(null, cid, { text: `m${i}` }));
    await storage.cool([cid]);
    const gone = [sent[3]!, sent[30]!, sent[57]!];
    const removed = gone.map((m) => m.id);
    await there.remove(removed);
    const seqs = async (): Promise<number[]> => {
      const { status, body } = await server('GET', `/v1/conversations/${cid}/messages?limit=100`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.data.map((m: { seq: number }) => m.seq);
    };
    const all = sent.map((m) => m.seq).reverse();
    const left = all.filter((seq) => !gone.some((m) => m.seq === seq));
    assert.deepEqual(await seqs(), left);
    const home = async () => {
      assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'managed' })).status, 200);
      return eventually(async () => {
        const now = await storage.record();
        return now.mode === 'managed' && now;
      }, 'the mode is managed');
    };
    const { sink } = await home();
    assert.equal(sink.status, 'idle');
    assert.match(
      sink.error,
      /^Messages that were no longer in the database, and that history leaves out: 3\.$/,
    );
    assert.deepEqual(await seqs(), left);
    assert.equal((await server('GET', `/v1/messages/${removed[0]}`)).status, 404);

    // They are not lost for good: a database that has them again brings them home.
    await there.restore(removed);
    assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
    assert.equal((await storage.settled()).sink.error, null);
    assert.deepEqual(await seqs(), all);
    assert.equal((await home()).sink.error, null);
    assert.deepEqual(await seqs(), all);
  });

test('docs/storage.md, Safety: a row that the customer changed into no message does not keep the others from being read, nor from coming back', async () => {
  const { storage } = it;
  const url = await databases.postgres.createDatabase();
  const { id: long } = await scene.group(await scene.actor(), []);
  await fill(db, long, 250);
  await storage.connect(url);
  const { id: cid } = await scene.group(await scene.actor(), []);
  const sent: { id: string; seq: number }[] = [];
  for (let i = 0; i < 12; i++) sent.push(await scene.send(null, cid, { text: `m${i}`, metadata: { i } }));
  await storage.cool([cid, long]);
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  for (const [i, change] of [
    [2, `metadata = '{'`],
    [4, `text = repeat('x', 200000)`],
    [6, `created_at = 'infinity'`],
  ] as const)
    await client.query(`UPDATE parley_messages SET ${change} WHERE id = $1`, [sent[i]!.id]);
  // A whole page of a copy, and more behind it.
  await client.query(
    `UPDATE parley_messages SET created_at = 'infinity' WHERE conversation_id = $1 AND seq <= 201`,
    [long],
  );
  await client.end();
  const shown = async () => {
    const { status, body } = await server('GET', `/v1/conversations/${cid}/messages?limit=100`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.map((m: { seq: number; metadata: object }) => [m.seq, m.metadata]).reverse();
  };
  const left = sent.flatMap(({ seq }, i) => (i === 4 || i === 6 ? [] : [[seq, i === 2 ? {} : { i }]]));
  assert.deepEqual(await shown(), left);
  assert.equal((await server('GET', `/v1/messages/${sent[2]!.id}`)).status, 200);
  for (const i of [4, 6]) assert.equal((await server('GET', `/v1/messages/${sent[i]!.id}`)).status, 404);
  assert.equal((await storage.api('PATCH', '/v1/storage', { mode: 'managed' })).status, 200);
  const { sink } = await eventually(async () => {
    const now = await storage.record();
    return now.mode === 'managed' && now;
  }, 'the mode is managed');
  assert.match(sink.error, /leaves out: 202\.$/);
  assert.deepEqual(await shown(), left);
  const { body } = await server('GET', `/v1/conversations/${long}/messages?limit=200`);
  assert.equal(body.data.length, 50);
});
