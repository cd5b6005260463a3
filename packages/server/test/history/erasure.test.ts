import assert from 'node:assert/strict';
import { test } from 'node:test';
import mysql from 'mysql2/promise';
import pg from 'pg';
import type { Actor } from '../support/scene.ts';
import { use, useService } from '../support/use.ts';
import { startCustomerMariadb, startCustomerPostgres, startHistoryReceiver } from './servers.ts';
import type { CustomerDatabase, Receiver } from './servers.ts';
import { eventually, openStorage } from './world.ts';

/** storage#erasure: an erasure reaches every configured database, in use or not, before it is used again. */

const { service, scene, server, db, sql } = useService();
const databases = use(
  async () => ({
    postgres: await startCustomerPostgres(),
    mariadb: await startCustomerMariadb(),
    receivers: [] as Receiver[],
  }),
  ({ postgres, mariadb, receivers }) =>
    Promise.all([postgres.stop(), mariadb.stop(), ...receivers.map((r) => r.close())]),
);
const it = use(
  async () => ({ storage: await openStorage(service, db) }),
  () => undefined,
);

/** A database in a slot, and all that it holds as text. */
interface Place {
  put(slot: 'a' | 'b'): Promise<void>;
  text(): Promise<string>;
}
const tables = ['parley_messages', 'parley_members', 'parley_conversations'];

async function relational(customer: CustomerDatabase): Promise<Place> {
  const url = await customer.createDatabase();
  const { hostname: host, port, username: user, pathname, protocol } = new URL(url);
  const at = { host, port: Number(port), user, database: pathname.slice(1) };
  return {
    // Slot a unless that is in use.
    async put(slot) {
      const { status, body } = await it.storage.api('POST', '/v1/storage/database/migrate', {
        adminUrl: url,
      });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(/slot b/.test(body.notes.join()), slot === 'b');
    },
    async text() {
      const found: unknown[] = [];
      if (protocol.startsWith('mysql')) {
        const client = await mysql.createConnection(at);
        for (const table of tables) found.push((await client.query(`SELECT * FROM ${table}`))[0]);
        await client.end();
      } else {
        const client = new pg.Client(at);
        await client.connect();
        for (const table of tables) found.push((await client.query(`SELECT * FROM ${table}`)).rows);
        await client.end();
      }
      return JSON.stringify(found);
    },
  };
}

/** Each has its own, because one that stays in a slot must be reached too. */
async function endpoint(): Promise<Place> {
  const receiver = await startHistoryReceiver();
  databases.receivers.push(receiver);
  return {
    async put(slot) {
      const put = await it.storage.api('PUT', `/v1/storage/database/${slot}`, { url: receiver.url });
      receiver.secret = put.body.signingSecret as string;
      assert.equal((await it.storage.api('POST', '/v1/storage/database/test', { slot })).body.ok, true);
    },
    text() {
      const kept = receiver.store.environments.get('env_dev')!;
      return Promise.resolve(JSON.stringify(Object.values(kept).map((records) => [...records])));
    },
  };
}

const ask = async (method: string, path: string, body?: object) => {
  const answer = await it.storage.api(method, `/v1/storage${path}`, body);
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
};
const home = async () => {
  await ask('PATCH', '', { mode: 'managed' });
  await eventually(async () => (await it.storage.record()).mode === 'managed', 'the mode is managed');
};
const away = async () => {
  await ask('PATCH', '', { mode: 'byo_db' });
  await it.storage.settled();
};
const erase = async (who: Actor, messages: string) =>
  assert.equal((await server('DELETE', `/v1/users/${who.id}?messages=${messages}`)).status, 204);

/** Three who wrote, in a group and with another. */
async function people(): Promise<[Actor, Actor, Actor]> {
  const all: [Actor, Actor, Actor] = [await scene.actor(), await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(all[0], all.slice(1));
  for (const one of all) await scene.send(one, cid, { text: 'said' });
  await scene.direct(all[0], await scene.actor());
  return all;
}

for (const [name, first, second] of [
  ['PostgreSQL', () => relational(databases.postgres), endpoint],
  ['MariaDB', () => relational(databases.mariadb), endpoint],
  ['an http endpoint', endpoint, () => relational(databases.postgres)],
] as const)
  test(`${name}: nobody who was erased while it was not in use is in it when it is used again`, async () => {
    const [one, other] = [await first(), await second()];
    await one.put('a');
    await away();
    const [anonymous, deleted, later] = await people();
    const kept = await scene.actor();
    await scene.group(kept, []);
    await it.storage.settled();
    for (const { id } of [anonymous, deleted, later, kept]) assert.ok((await one.text()).includes(id));
    await home();
    await erase(anonymous, 'anonymize');
    await erase(deleted, 'delete');
    await it.storage.settled();
    assert.equal((await it.storage.record()).sink.error, null);
    for (const { id } of [anonymous, deleted]) assert.ok(!(await one.text()).includes(id), 'while managed');
    await away();
    await ask('POST', '/database/resync');
    await it.storage.settled();
    for (const { id } of [anonymous, deleted]) assert.ok(!(await one.text()).includes(id), 'used again');

    await other.put('b');
    await ask('POST', '/database/promote/b');
    await it.storage.settled();
    assert.ok((await other.text()).includes(later.id));
    await erase(later, 'anonymize');
    await it.storage.settled();
    for (const place of [one, other]) assert.ok(!(await place.text()).includes(later.id), 'in both slots');
    await ask('POST', '/database/promote/a');
    await it.storage.settled();
    for (const place of [one, other]) {
      const text = await place.text();
      for (const { id } of [anonymous, deleted, later]) assert.ok(!text.includes(id));
      assert.ok(text.includes(kept.id));
    }
    await home();
  });

test('an erasure that cannot reach a database that is not in use is listed, holds up nothing, and is done when it can', async () => {
  const one = await relational(databases.postgres);
  await one.put('a');
  await away();
  const [gone] = await people();
  await it.storage.settled();
  await home();
  await databases.postgres.kill();
  await erase(gone, 'anonymize');
  const listed = async () => {
    const { sink } = await it.storage.record();
    return /^Erasures that have not reached every database: 1\. Slot a: The database /.test(sink.error ?? '');
  };
  await eventually(listed, 'the record says so');
  assert.equal((await it.storage.record()).sink.erasures, 1);
  await databases.postgres.start();
  assert.ok((await one.text()).includes(gone.id));
  // Its next use, though the next try would be later.
  await sql(`UPDATE storage_slots SET erase_due_at = clock_timestamp() + interval '1 hour'`);
  await away();
  assert.ok(!(await one.text()).includes(gone.id));
  assert.equal((await it.storage.record()).sink.error, null);
  await home();
});

test('an erasure that a database in use refuses keeps no change from being written to it, and is tried again', async () => {
  const url = await databases.postgres.createDatabase();
  const one = await relational({ ...databases.postgres, createDatabase: () => Promise.resolve(url) });
  await one.put('a');
  await away();
  const [gone, stays] = await people();
  await it.storage.settled();
  const there = new pg.Client(url.replace(/\?.*/, ''));
  await there.connect();
  await there.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$`,
  );
  await there.query(
    'CREATE TRIGGER refuse BEFORE UPDATE ON parley_messages FOR EACH ROW EXECUTE FUNCTION refuse()',
  );
  await erase(gone, 'anonymize');
  const { id: cid } = await scene.group(stays, []);
  const { id } = await scene.send(stays, cid, { text: 'after the erasure' });
  await eventually(async () => (await one.text()).includes(id), 'the change is written');
  const { sink } = await eventually(async () => {
    const record = await it.storage.record();
    return record.sink.error !== null && record;
  }, 'the record says that it failed');
  assert.equal(sink.erasures, 1);
  assert.ok((await one.text()).includes(gone.id));
  await there.query('DROP TRIGGER refuse ON parley_messages').finally(() => there.end());
  await it.storage.settled();
  assert.ok(!(await one.text()).includes(gone.id));
  await home();
});
