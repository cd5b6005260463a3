import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startNodes, until } from '../../../server/test/cluster/nodes.ts';
import { serverApi } from '../../../server/test/support/api.ts';
import { catchUpAll } from '../../src/bots.ts';
import { createClient } from '../../src/index.ts';
import { tokenFor } from '../chaos/actor.ts';
import { startProxy } from '../chaos/proxy.ts';
import { seeded } from '../chaos/random.ts';
import { assertConverged, newClient, secretKey, settled, whenReady } from './people.ts';

/** socket#goaway with real clients: a node is shut down while everybody writes. */

test('socket#goaway: SIGTERM of one node moves its clients to the other; nothing is lost, doubled or out of order; exit 0', async () => {
  const cluster = await startNodes([{}, {}]);
  const random = seeded(1);
  const [leaving, stays] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]];
  let ports = [leaving.port];
  const proxies = await Promise.all(
    Array.from({ length: 7 }, () => startProxy(() => random.pick(ports), random)),
  );
  const server = serverApi(stays.url);
  const names = proxies.slice(1).map((_, i) => `mover-${i}`);
  // It opens no conversation, and hears of everything all the same.
  const bot = createClient({
    url: proxies[6]!.url,
    token: () => tokenFor(secretKey, 'bot'),
    catchUp: catchUpAll,
  });
  const heard: string[] = [];
  bot.on('message', ({ message }) => heard.push(message.text!));
  const people = [];
  try {
    const members = [...names, 'bot'];
    for (const name of members) assert.equal((await server('PUT', `/v1/users/${name}`, {})).status, 200);
    const { body } = await server('POST', '/v1/conversations', { type: 'group', members });
    await bot.connect();
    for (const [i, name] of names.entries()) {
      const client = newClient(proxies[i]!.url, name);
      await client.connect();
      const handle = client.conversations.open(body.id);
      await whenReady(handle);
      await handle.loadMembers();
      people.push({ client, handles: new Map([[handle.id, handle]]), handle, name });
    }
    let talking = true;
    let said = 0;
    const talk = people.map(async ({ handle, name }) => {
      for (let n = 0; talking && n < 200; n++) {
        handle.send(`${name} ${n}`);
        said++;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    });
    const moved = [bot, ...people.map(({ client }) => client)].map(
      (client) =>
        new Promise<void>((resolve) => {
          let away = false;
          client.on('state', ({ state }) => {
            away ||= state === 'reconnecting';
            if (away && state === 'connected') resolve();
          });
        }),
    );
    ports = [stays.port];
    assert.equal(await leaving.stop(), 0);
    await Promise.all(moved);
    talking = false;
    await Promise.all(talk);
    await settled(people);
    for (const { client, handles } of people) await assertConverged(stays.url, client, handles, 'moved');
    const texts = people[0]!.handle.messages.get().items.map((m) => m.text!);
    assert.equal(texts.length, said, 'each is there');
    assert.equal(new Set(texts).size, texts.length);
    await until(() => heard.length >= said);
    assert.deepEqual(heard, texts, 'the bot heard each once, in order');
    for (const name of names) {
      const own = texts
        .filter((text) => text.startsWith(`${name} `))
        .map((text) => Number(text.split(' ')[1]));
      assert.deepEqual(
        own,
        own.map((_, i) => own[0]! + i),
        `${name}: in order, none missing`,
      );
    }
  } finally {
    for (const { client } of people) client.disconnect();
    bot.disconnect();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await cluster.dispose();
  }
});
