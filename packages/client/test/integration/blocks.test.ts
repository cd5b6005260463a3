import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { newClient, whenReady } from './people.ts';

/** sdk#blocks, with real clients of the real service. */

const { service, scene, server } = useService();

const opened = async (client: Client, cid: string): Promise<ConversationHandle> => {
  await client.connect();
  const handle = client.conversations.open(cid);
  await whenReady(handle);
  return handle;
};
const marked = (handle: ConversationHandle): boolean[] =>
  handle.messages.get().items.map((m) => m.blocked === true);

test('sdk#blocks: shows at once and on the other device, marks messages, which mention nobody, and a device that was away loads the list', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  await scene.send(ben, cid);
  await scene.send(anna, cid);
  const { id: direct } = await scene.direct(anna, ben);
  const [phone, laptop] = [newClient(service.url, anna.id), newClient(service.url, anna.id)];
  try {
    const [onPhone, onLaptop] = await Promise.all([phone, laptop].map((c) => opened(c, cid)));
    const blocking = phone.blocks.add(ben.id);
    await until(() => phone.blocks.get().length > 0);
    assert.deepEqual(marked(onPhone!), [true, false]);
    await blocking;
    await until(() => laptop.blocks.get().includes(ben.id));
    assert.deepEqual(marked(onLaptop!), [true, false]);
    assert.equal(onLaptop!.messages.get().items[0], onLaptop!.messages.get().items[0]);
    // Its messages mention nobody.
    const heard: string[] = [];
    phone.on('mention', ({ message }) => heard.push(message.id));
    const mention = () => scene.send(ben, cid, { text: 'hi', mentions: [{ type: 'user', userId: anna.id }] });
    const { id: silent } = await mention();
    await until(() => onPhone!.messages.get().items.some((m) => m.id === silent));
    assert.equal(phone.conversations.get().mentionUnreadTotal, 0);
    // What is written to the blocked one fails for good.
    const failed = new Promise<string>((resolve) => phone.on('failed', ({ error }) => resolve(error!.code)));
    phone.conversations.send(direct, 'hello');
    assert.equal(await failed, 'blocked');
    await assert.rejects(phone.blocks.add(anna.id), { code: 'invalid_request' });
    assert.deepEqual(phone.blocks.get(), [ben.id], 'what was refused is taken back');

    laptop.disconnect();
    await phone.blocks.remove(ben.id);
    const { id: loud } = await mention();
    await until(() => heard.length > 0);
    assert.deepEqual(heard, [loud]);
    assert.equal(phone.conversations.get().mentionUnreadTotal, 1);
    const cleo = await scene.actor('cleo');
    await server('PUT', `/v1/blocks/${cleo.id}`, { byUserId: anna.id });
    await laptop.connect();
    await until(() => laptop.blocks.get().join() === cleo.id);
    assert.ok(marked(onLaptop!).every((mark) => !mark));
    await until(() => phone.blocks.get().join() === cleo.id);
  } finally {
    phone.disconnect();
    laptop.disconnect();
  }
});

test('sdk#roles: an owner cannot make moderators where the environment does not allow it', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const client = newClient(service.url, anna.id);
  try {
    const handle = await opened(client, cid);
    await handle.loadMembers();
    await assert.rejects(handle.setRole(ben.id, 'moderator'), { code: 'forbidden' });
    await server('PATCH', `/v1/conversations/${cid}/members/${ben.id}`, { role: 'moderator' });
    await until(() => handle.members.get().find((m) => m.userId === ben.id)?.role === 'moderator');
  } finally {
    client.disconnect();
  }
});

test('sdk#sendable: slow mode and a silence tell from when on one may send, on all devices', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const [owner, phone] = [newClient(service.url, anna.id), newClient(service.url, ben.id)];
  try {
    const [onOwner, onPhone] = await Promise.all([owner, phone].map((c) => opened(c, cid)));
    const end = onPhone!.sendableAt.subscribe(() => {});
    await onOwner!.update({ rules: { slowModeSeconds: 3_600 } });
    await until(
      () => phone.conversations.get().items.find((c) => c.id === cid)?.rules?.slowModeSeconds === 3_600,
    );
    assert.equal(onPhone!.sendableAt.get(), null);
    onPhone!.send('hello');
    await until(() => onPhone!.sendableAt.get() !== null);
    const wait = onPhone!.sendableAt.get()! - Date.now();
    assert.ok(wait > 3_000_000 && wait <= 3_700_000, String(wait));
    await onOwner!.update({ rules: { slowModeSeconds: 0 } });
    await until(() => onPhone!.sendableAt.get() === null);

    await onOwner!.silence(ben.id, { reason: 'calm down' });
    await until(() => onPhone!.sendableAt.get() === Infinity);
    assert.deepEqual(
      (await onOwner!.restrictions()).map(({ userId, kind }) => [userId, kind]),
      [[ben.id, 'silence']],
    );
    await assert.rejects(onPhone!.silence(anna.id), { code: 'forbidden' });
    await onOwner!.unrestrict(ben.id);
    await until(() => onPhone!.sendableAt.get() === null);
    // Who did not hear of the silence learns of it from what is refused.
    await server('PUT', `/v1/users/${ben.id}/silence`, { until: new Date(Date.now() + 3_600_000) });
    const late = newClient(service.url, ben.id);
    const onLate = await opened(late, cid);
    onLate.sendableAt.subscribe(() => {});
    const failed = new Promise<string>((resolve) => late.on('failed', ({ error }) => resolve(error!.code)));
    await until(() => onPhone!.sendableAt.get() !== null);
    onLate.send('hello');
    assert.equal(await failed, 'restricted');
    await until(() => onLate.sendableAt.get() !== null);
    late.disconnect();
    end();
  } finally {
    owner.disconnect();
    phone.disconnect();
  }
});
