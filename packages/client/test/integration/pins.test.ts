import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { tokenFor } from '../chaos/actor.ts';
import { createClient } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { newClient, secretKey, whenReady } from './people.ts';

/** sdk#pins, with real clients of the real service. */

const { service, scene, server } = useService();

const opened = async (client: Client, cid: string): Promise<ConversationHandle> => {
  await client.connect();
  const handle = client.conversations.open(cid);
  await whenReady(handle);
  return handle;
};
const texts = (handle: ConversationHandle): string =>
  handle.pins
    .get()
    .items.map((m) => m.text)
    .join(' ');
const pinnedBy = (handle: ConversationHandle, id: string) =>
  handle.messages.get().items.find((m) => m.id === id)?.pinned?.by;

test('sdk#pins: a pin shows at once and on other devices, follows edits and deletions, and a refusal takes it back', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  // More than a window: the first message is only in the list of pins.
  const old = await scene.send(null, cid, { text: 'old' });
  for (let i = 0; i < 50; i++) await scene.send(null, cid, { text: `m${i}` });
  const { id } = await scene.send(anna, cid, { text: 'new' });
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  let refuse = false;
  const phone = createClient({
    url: service.url,
    token: () => tokenFor(secretKey, ben.id),
    fetch: async (input, init) => {
      const pins = init?.method === 'PUT' && String(input).endsWith('/pin');
      if (pins) await held;
      if (pins && refuse)
        return new Response('{"error":{"code":"limit_reached","message":"full"}}', { status: 409 });
      return fetch(input, init);
    },
  });
  const [laptop, other] = [newClient(service.url, ben.id), newClient(service.url, anna.id)];
  const clients = [phone, laptop, other];
  try {
    const handles = await Promise.all(clients.map((c) => opened(c, cid)));
    const [onPhone, onLaptop, onOther] = handles as [
      ConversationHandle,
      ConversationHandle,
      ConversationHandle,
    ];
    for (const handle of handles) await until(() => handle.pins.get().status === 'ready');
    assert.equal(texts(onPhone), '');
    const pinning = onPhone.pin(id);
    await until(() => texts(onPhone) === 'new' && pinnedBy(onPhone, id) === ben.id);
    assert.equal(texts(onLaptop), '', 'the server does not know yet');
    go();
    await pinning;
    for (const handle of handles) await until(() => texts(handle) === 'new');
    assert.equal(pinnedBy(onOther, id), ben.id);

    await server('PUT', `/v1/messages/${old.id}/pin`);
    for (const handle of handles) await until(() => texts(handle) === 'old new');
    assert.equal(onOther.pins.get().items[0]!.pinned!.by, null);

    await onOther.edit(id, { text: 'edited' });
    for (const handle of handles) await until(() => texts(handle) === 'old edited');
    assert.equal(pinnedBy(onLaptop, id), ben.id, 'an edit leaves it alone');

    refuse = true;
    const [, third] = onPhone.messages.get().items;
    await assert.rejects(onPhone.pin(third!.id!), { code: 'limit_reached' });
    assert.equal(texts(onPhone), 'old edited', 'what was refused is gone');

    // A device that was away catches up.
    laptop.disconnect();
    await onOther.unpin(id);
    await onOther.pin(third!.id!);
    assert.equal(texts(onOther), `${third!.text} old`);
    await server('DELETE', `/v1/messages/${old.id}`);
    await laptop.connect();
    for (const handle of handles) await until(() => texts(handle) === third!.text);
    assert.equal(pinnedBy(onLaptop, id), undefined);
    await Promise.all([onOther.unpin(third!.id!), onOther.pin(third!.id!), onOther.unpin(third!.id!)]);
    for (const handle of handles) await until(() => texts(handle) === '');
    // A device that has just been switched on shows the same.
    const fresh = newClient(service.url, anna.id);
    const onFresh = await opened(fresh, cid);
    await until(() => onFresh.pins.get().status === 'ready');
    assert.equal(texts(onFresh), '');
    fresh.disconnect();
  } finally {
    for (const client of clients) client.disconnect();
  }
});
