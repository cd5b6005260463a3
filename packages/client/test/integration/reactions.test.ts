import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { tokenFor } from '../chaos/actor.ts';
import { createClient } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { newClient, secretKey, whenReady } from './people.ts';

/** sdk#reactions, with real clients of the real service. */

const { service, scene } = useService();

const opened = async (client: Client, cid: string): Promise<ConversationHandle> => {
  await client.connect();
  const handle = client.conversations.open(cid);
  await whenReady(handle);
  return handle;
};
const reactionsOf = (handle: ConversationHandle, id: string) =>
  handle.messages.get().items.find((m) => m.id === id)?.reactions;
const brief = (handle: ConversationHandle, id: string): string => {
  const { counts = [], own = [] } = reactionsOf(handle, id) ?? {};
  return `${counts.map((c) => `${c.emoji}${c.count}`).join(' ')} | ${own.join(' ')}`;
};

test('sdk#reactions, T1.6: one’s own shows at once and on the other device, edits leave it alone, and a refusal takes it back', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const { id } = await scene.send(anna, cid);
  // The phone's request waits until the test lets it go.
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  let refuse = false;
  const phone = createClient({
    url: service.url,
    token: () => tokenFor(secretKey, ben.id),
    fetch: async (input, init) => {
      const reacts = init?.method === 'PUT' && String(input).includes('/reactions/');
      if (reacts) await held;
      if (reacts && refuse)
        return new Response('{"error":{"code":"limit_reached","message":"full"}}', { status: 409 });
      return fetch(input, init);
    },
  });
  const [laptop, other] = [newClient(service.url, ben.id), newClient(service.url, anna.id)];
  try {
    const [onPhone, onLaptop, onOther] = await Promise.all([phone, laptop, other].map((c) => opened(c, cid)));
    assert.ok(phone.features?.includes('reactions'));
    const before = onPhone!.messages.get().items;
    const heard: string[] = [];
    other.on('reaction', ({ conversationId, data }) =>
      heard.push(`${conversationId} ${data.id} ${data.total}`),
    );
    const reacting = onPhone!.react(id, '👍');
    await until(() => brief(onPhone!, id) === '👍1 | 👍');
    assert.equal(brief(onLaptop!, id), ' | ', 'the server does not know yet');
    go();
    assert.deepEqual((await reacting).own, ['👍']);
    assert.equal(brief(onPhone!, id), '👍1 | 👍');
    await until(() => brief(onLaptop!, id) === '👍1 | 👍');
    await until(() => brief(onOther!, id) === '👍1 | ');
    assert.deepEqual(heard, [`${cid} ${id} 1`]);
    assert.equal(onPhone!.messages.get().items.length, before.length);

    await onOther!.edit(id, { text: 'edited' });
    for (const handle of [onPhone!, onLaptop!, onOther!])
      await until(() => handle.messages.get().items.some((m) => m.text === 'edited'));
    assert.equal(brief(onPhone!, id), '👍1 | 👍');
    assert.equal(brief(onLaptop!, id), '👍1 | 👍');

    const { data } = await onOther!.reactors(id, '👍');
    assert.deepEqual(
      data.map((r) => r.userId),
      [ben.id],
    );
    await onOther!.react(id, '👍');
    await until(() => brief(onPhone!, id) === '👍2 | 👍');

    refuse = true;
    await assert.rejects(onPhone!.react(id, '🎉'), { code: 'limit_reached' });
    assert.equal(brief(onPhone!, id), '👍2 | 👍', 'what was refused is gone');

    await onPhone!.unreact(id, '👍');
    await until(() => brief(onLaptop!, id) === '👍1 | ');
    await until(() => brief(onOther!, id) === '👍1 | 👍');

    // A device that was away hears of its user's own too, and shows none where the last one was taken back.
    laptop.disconnect();
    refuse = false;
    await onPhone!.react(id, '🎈');
    await onOther!.unreact(id, '👍');
    await laptop.connect();
    await until(() => brief(onLaptop!, id) === '🎈1 | 🎈');
    await onPhone!.unreact(id, '🎈');
    for (const handle of [onPhone!, onLaptop!, onOther!])
      await until(() => reactionsOf(handle, id) === undefined);
    await onOther!.react(id, '👍');
    // A device that has just been switched on shows the same.
    const fresh = newClient(service.url, anna.id);
    assert.equal(brief(await opened(fresh, cid), id), '👍1 | 👍');
    fresh.disconnect();
  } finally {
    for (const client of [phone, laptop, other]) client.disconnect();
  }
});

test('events#personal: muting on one device shows on the other', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  const [phone, laptop] = [newClient(service.url, ben.id), newClient(service.url, ben.id)];
  try {
    const handle = await opened(phone, cid);
    await laptop.connect();
    const muted = () => laptop.conversations.get().items.find((c) => c.id === cid)?.muted;
    const heard: unknown[] = [];
    laptop.on('personal', ({ kind, d }) => heard.push([kind, d['conversationId'], d['level']]));
    await until(() => muted() === false);
    await handle.mute();
    await until(() => muted() === true);
    await handle.unmute();
    await until(() => muted() === false);
    assert.deepEqual(heard, [
      ['level', cid, 'none'],
      ['level', cid, 'all'],
    ]);
  } finally {
    for (const client of [phone, laptop]) client.disconnect();
  }
});
