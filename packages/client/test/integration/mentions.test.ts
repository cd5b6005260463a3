import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { compose } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { newClient, whenReady } from './people.ts';

/** sdk#mentions, with real clients of the real service. */

const { service, scene } = useService();

const opened = async (client: Client, cid: string): Promise<ConversationHandle> => {
  await client.connect();
  const handle = client.conversations.open(cid);
  await whenReady(handle);
  return handle;
};
const item = (client: Client, cid: string) => client.conversations.get().items.find((c) => c.id === cid)!;

test('sdk#mentions: composed, counted, listed, edited and read', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const { id: other } = await scene.group(anna, [ben]);
  const [a, b] = [newClient(service.url, anna.id), newClient(service.url, ben.id)];
  try {
    const onA = await opened(a, cid);
    await b.connect();
    const heard: string[] = [];
    b.on('mention', ({ message }) => heard.push(message.id));
    const off = b.mentions.subscribe(() => {});
    await until(() => b.mentions.get().status === 'ready');

    const draft = compose().text('👋 ').mention({ id: ben.id, name: 'Ben' }).text(', lunch?').toDraft();
    assert.deepEqual(draft, {
      text: '👋 @Ben, lunch?',
      mentions: [{ type: 'user', userId: ben.id, offset: 3, length: 4 }],
    });
    assert.deepEqual(onA.send(draft).mentions, draft.mentions, 'shown at once');
    const shown = () => b.mentions.get().items;
    await until(() => shown().length === 1);
    const { id } = shown()[0]!;
    assert.deepEqual([shown()[0]!.mentions, heard], [draft.mentions, [id]]);
    assert.equal(item(b, cid).mentionUnreadCount, 1);
    a.conversations.send(other, { text: 'all', mentions: [{ type: 'everyone' }] });
    await until(() => b.conversations.get().mentionUnreadTotal === 2);
    assert.equal(shown().length, 1, 'everyone names nobody');

    await onA.edit(id, { mentions: [] });
    await until(() => shown().length === 0 && !item(b, cid).mentionUnreadCount);
    await onA.edit(id, { text: 'Ben!', mentions: [{ type: 'user', userId: ben.id }] });
    await until(() => shown().length === 1 && item(b, cid).mentionUnreadCount === 1);

    // A device that has just been switched on shows the same.
    const fresh = newClient(service.url, ben.id);
    await fresh.connect();
    assert.equal(fresh.conversations.get().mentionUnreadTotal, 2);
    await fresh.mentions.load();
    assert.deepEqual(
      fresh.mentions.get().items.map((m) => m.id),
      [id],
    );
    fresh.disconnect();
    b.conversations.markRead(cid);
    await until(() => b.conversations.get().mentionUnreadTotal === 1);
    await onA.delete(id);
    await until(() => shown().length === 0);
    off();
  } finally {
    for (const client of [a, b]) client.disconnect();
  }
});

test('sdk#mentions: pages of mentions, and what was missed while away', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const mentions = [{ type: 'user', userId: ben.id }];
  const ids: string[] = [];
  for (let i = 0; i < 60; i++) {
    const body = { text: `${i}`, senderId: anna.id, mentions };
    ids.unshift((await scene.server('POST', `/v1/conversations/${cid}/messages`, body)).body.id);
  }
  const client = newClient(service.url, ben.id);
  try {
    await client.connect();
    const off = client.mentions.subscribe(() => {});
    const shown = () => client.mentions.get().items.map((m) => m.id);
    await until(() => client.mentions.get().status === 'ready');
    assert.deepEqual([shown(), client.mentions.get().hasMore], [ids.slice(0, 50), true]);
    await client.mentions.loadMore();
    assert.deepEqual([shown(), client.mentions.get().hasMore], [ids, false]);
    client.disconnect();
    const late = await scene.send(anna, cid, { text: 'late', mentions });
    await client.connect();
    await until(() => shown()[0] === late.id);
    off();
  } finally {
    client.disconnect();
  }
});

test('sdk#levels: a level is set on one device and shows on the other, until it ends', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const [phone, laptop] = [newClient(service.url, ben.id), newClient(service.url, ben.id)];
  try {
    const handle = await opened(phone, cid);
    await laptop.connect();
    assert.equal(item(laptop, cid).level, 'all');
    await handle.setLevel('mentions');
    assert.equal(item(phone, cid).level, 'mentions');
    await until(() => item(laptop, cid).level === 'mentions');
    const end = new Date(Date.now() + 2_000);
    await handle.setLevel('none', { until: end });
    await until(
      () => item(laptop, cid).mutedUntil === end.toISOString() || item(laptop, cid).level === 'mentions',
    );
    // Nobody says that it ended: the clients ask.
    for (const client of [phone, laptop])
      await until(() => item(client, cid).level === 'mentions' && !item(client, cid).muted);
    assert.ok(!('mutedUntil' in item(laptop, cid)));
    // A process whose client has disconnected does not live on for the end of a level.
    await handle.setLevel('none', { until: new Date(Date.now() + 3_600_000) });
  } finally {
    for (const client of [phone, laptop]) client.disconnect();
  }
});
