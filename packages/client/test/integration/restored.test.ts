import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startNodes, until } from '../../../server/test/cluster/nodes.ts';
import type { Nodes } from '../../../server/test/cluster/nodes.ts';
import { serverApi } from '../../../server/test/support/api.ts';
import { catchUpAll } from '../../src/bots.ts';
import { createClient } from '../../src/index.ts';
import type { Client } from '../../src/index.ts';
import { tokenFor } from '../chaos/actor.ts';
import { assertConverged, newClient, secretKey, settled, whenReady } from './people.ts';

/** A store that goes back to an earlier state while nodes run and clients are connected. */

const tables = async ({ sql }: Nodes): Promise<string[]> =>
  (
    await sql(
      `SELECT c.relname AS name FROM pg_class c WHERE c.relkind = 'r' AND NOT c.relispartition
       AND c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'schema\\_%' ORDER BY 1`,
    )
  ).map((row) => String(row['name']));

async function snapshot(cluster: Nodes): Promise<void> {
  const copies = (await tables(cluster)).map((name) => `CREATE TABLE kept.${name} AS TABLE public.${name};`);
  await cluster.sql(`BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE SCHEMA kept; ${copies.join('')} COMMIT`);
}

async function restore(cluster: Nodes): Promise<void> {
  const names = await tables(cluster);
  const fill = names.map((name) => `INSERT INTO ${name} OVERRIDING SYSTEM VALUE TABLE kept.${name};`);
  const all = `BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE ${names.join()}; ${fill.join('')} COMMIT`;
  // The nodes go on writing meanwhile: a deadlock is tried again.
  for (;;)
    try {
      return void (await cluster.sql(all));
    } catch (error) {
      if ((error as { code?: string }).code !== '40P01') throw error;
      await cluster.sql('ROLLBACK');
    }
}

const cameBack = (client: Client): Promise<void> =>
  new Promise((resolve) => {
    let away = false;
    client.on('state', ({ state }) => {
      away ||= state === 'reconnecting';
      if (away && state === 'connected') resolve();
    });
  });

test('a store restored to an earlier state under live clients: they show what it has, no ghosts, and all that follows', async () => {
  const cluster = await startNodes([{}, {}]);
  const [one, two] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]];
  const server = serverApi(one.url);
  const names = ['ann', 'bob', 'robot'];
  const clients: Client[] = [];
  try {
    for (const name of names) assert.equal((await server('PUT', `/v1/users/${name}`, {})).status, 200);
    const group = async (): Promise<string> =>
      (await server('POST', '/v1/conversations', { type: 'group', members: names })).body.id as string;
    const say = async (cid: string, count: number, what: string): Promise<void> => {
      for (let i = 0; i < count; i++)
        assert.equal(
          (await server('POST', `/v1/conversations/${cid}/messages`, { text: `${what} ${i}` })).status,
          201,
        );
    };
    const [talk, quiet] = [await group(), await group()];
    await say(talk, 5, 'kept');

    const robot = createClient({
      url: two.url,
      token: () => tokenFor(secretKey, 'robot'),
      catchUp: catchUpAll,
    });
    const heard: string[] = [];
    robot.on('message', ({ message }) => heard.push(message.text!));
    const people = [newClient(one.url, 'ann'), newClient(two.url, 'bob')].map((client) => ({
      client,
      handles: new Map(),
    }));
    clients.push(robot, ...people.map(({ client }) => client));
    await Promise.all(clients.map((client) => client.connect()));
    const open = async (cid: string): Promise<void> => {
      for (const { client, handles } of people) {
        const handle = client.conversations.open(cid);
        handles.set(cid, handle);
        await whenReady(handle);
        await handle.loadMembers();
      }
    };
    await open(talk);
    await open(quiet);

    await snapshot(cluster);
    // A mark is made every ten seconds: the next one at once.
    await cluster.sql(`UPDATE store_marks SET at = at - interval '1 minute'`);
    await until(
      async () =>
        (await cluster.sql('SELECT 1 FROM store_marks WHERE mark NOT IN (SELECT mark FROM kept.store_marks)'))
          .length > 0,
    );
    await say(talk, 20, 'lost');
    await say(quiet, 1, 'lost');
    const later = await group();
    await say(later, 1, 'lost');
    await open(later);
    for (const { handles } of people) {
      await until(() => handles.get(talk)!.messages.get().items.at(-1)?.text === 'lost 19');
      handles.get(talk)!.markRead();
    }
    await until(() => heard.length === 22);

    const back = clients.map(cameBack);
    await restore(cluster);
    await Promise.all(back);
    await say(talk, 7, 'after');
    await settled(people);
    for (const { client, handles } of people) await assertConverged(one.url, client, handles, 'restored');
    for (const { client, handles } of people) {
      const texts = handles
        .get(talk)!
        .messages.get()
        .items.map((m: { text: string }) => m.text);
      assert.deepEqual(texts, [
        ...Array.from({ length: 5 }, (_, i) => `kept ${i}`),
        ...Array.from({ length: 7 }, (_, i) => `after ${i}`),
      ]);
      assert.ok(!client.conversations.get().items.some((item) => item.id === later));
    }
    await until(() => heard.includes('after 6'));
    assert.deepEqual(
      heard.filter((text) => text.startsWith('after')),
      Array.from({ length: 7 }, (_, i) => `after ${i}`),
    );
  } finally {
    for (const client of clients) client.disconnect();
    await cluster.dispose();
  }
});
