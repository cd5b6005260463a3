import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startWebpush } from '../push/vendors/webpush.ts';
import type { Delivered } from '../push/vendors/vendor.ts';
import { parley } from '../support/cli.ts';
import type { Actor } from '../support/scene.ts';
import { connect } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { signToken } from '../support/tokens.ts';
import { ready } from '../uploads/files.ts';
import { addEndpoint, pass } from '../webhooks/tools.ts';
import { startReceiver, verify } from '../webhooks/receiver.ts';
import { listensForPush, pushesCounted, settled, until } from './tools.ts';
import { setUp, use, useService } from '../support/use.ts';

/** The whole way, from a send to a push service that checks and decrypts what arrives. */

const { service, scene, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const vendor = use(
  () => startWebpush(() => Date.now()),
  (v) => v.close(),
);
let directory: string;
setUp(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-push-'));
  const { provider: _, ...keys } = vendor.credentials;
  const file = join(directory, 'vapid.json');
  await writeFile(file, JSON.stringify(keys));
  await parley(service, 'push', 'set', 'env_dev', 'webpush', file);
});
after(() => rm(directory, { recursive: true }));

async function withDevice(name?: string): Promise<Actor> {
  const actor = await scene.actor(name);
  const { status } = await actor.api('POST', '/v1/push/devices', {
    provider: 'webpush',
    token: vendor.tokenOf(actor.id),
  });
  assert.equal(status, 201);
  return actor;
}
const socketOf = (actor: Actor): Promise<TestSocket> => connect(service, signToken({ sub: actor.id }));
const told = (actor: Actor): Delivered[] =>
  vendor.delivered.filter((d) => d.token === vendor.tokenOf(actor.id));
const nameIs = (actor: Actor, name: string) => scene.server('PUT', `/v1/users/${actor.id}`, { name });

describe('push: who is told', () => {
  it('members without a live socket who have not muted, are not the sender and are not deactivated', async () => {
    const names = ['sender', 'offline', 'online', 'muted', 'deactivated', 'left', 'stranger'];
    const actors = await Promise.all(names.map((name) => withDevice(name)));
    const [sender, offline, online, muted, deactivated, left, stranger] = actors as [Actor, ...Actor[]] &
      Actor[];
    const bare = await scene.actor('no-device');
    const { id } = await scene.group(sender!, [offline!, online!, muted!, deactivated!, left!, bare]);
    const socket = await socketOf(online!);
    assert.equal((await muted!.api('PUT', `/v1/conversations/${id}/mute`)).status, 200);
    await scene.server('POST', `/v1/users/${deactivated!.id}/deactivate`);
    await left!.api('DELETE', `/v1/conversations/${id}/members/${left!.id}`);
    await scene.send(sender!, id, { text: 'hello' });
    await socket.event('message.new', id);
    await settled(db);
    assert.deepEqual(
      [sender!, offline!, online!, muted!, deactivated!, left!, stranger!].map((a) => told(a).length),
      [0, 1, 0, 0, 0, 0, 0],
    );
    await socket.close();
    assert.deepEqual(vendor.violations, []);
  });

  it('one whose last socket just closed is told at once: the grace period of presence does not count', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    const { id } = await scene.group(sender, [member]);
    const socket = await socketOf(member);
    await scene.send(sender, id);
    await settled(db);
    assert.equal(told(member).length, 0);
    await socket.close();
    // The service hears of the end of a socket a moment after we do.
    await until(async () => {
      await scene.send(sender, id);
      await settled(db);
      return told(member).length > 0;
    }, 'a push');
    const watcher = await socketOf(sender);
    const watched = await watcher.request('presence.watch', { userIds: [member.id] });
    assert.equal(watched.presence[0].online, true, 'still online for those who watch');
    await watcher.close();
  });

  it('every device of a member; one that was removed no more', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    const token = vendor.tokenOf(`${member.id}-tablet`);
    await member.api('POST', '/v1/push/devices', { provider: 'webpush', token });
    const { id } = await scene.group(sender, [member]);
    const onTablet = () => vendor.delivered.filter((d) => d.token === token).length;
    await scene.send(sender, id);
    await settled(db);
    assert.deepEqual([told(member).length, onTablet()], [1, 1]);
    assert.equal((await member.api('DELETE', `/v1/push/devices/${encodeURIComponent(token)}`)).status, 204);
    await scene.send(sender, id);
    await settled(db);
    assert.deepEqual([told(member).length, onTablet()], [2, 1]);
  });

  it('blocks#push, T6.2: nobody who blocks the author', async () => {
    const [sender, blocker, other] = [await scene.actor(), await withDevice(), await withDevice()];
    const { id } = await scene.group(sender, [blocker, other]);
    await blocker.api('PUT', `/v1/blocks/${sender.id}`, {});
    await scene.send(sender, id);
    await settled(db);
    assert.deepEqual([told(blocker).length, told(other).length], [0, 1]);
    await blocker.api('DELETE', `/v1/blocks/${sender.id}`);
    await scene.send(sender, id);
    await settled(db);
    assert.deepEqual([told(blocker).length, told(other).length], [1, 2]);
  });

  it('nobody, for a deduplicated or refused send', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    const { id } = await scene.group(sender, [member]);
    const path = `/v1/conversations/${id}/messages`;
    for (let i = 0; i < 2; i++)
      assert.equal((await sender.api('POST', path, { clientMsgId: 'once', text: 'x' })).status, 201);
    assert.equal((await sender.api('POST', path, { clientMsgId: 'none', text: '' })).status, 400);
    assert.equal(
      (await (await scene.actor()).api('POST', path, { clientMsgId: 'n', text: 'x' })).status,
      403,
    );
    await settled(db);
    assert.equal(told(member).length, 1);
  });
});

describe('push: what is told', () => {
  it('sender, text, total unread, collapse per conversation, and data to open it', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    await nameIs(sender, 'Ada Lovelace');
    const other = await scene.group(null, [member]);
    await member.api('PUT', `/v1/conversations/${other.id}/mute`);
    await scene.send(null, other.id);
    await scene.send(null, other.id);
    const { id } = await scene.direct(sender, member);
    const message = await scene.send(sender, id, { text: 'x'.repeat(300) });
    await settled(db);
    const [push, ...more] = told(member);
    assert.deepEqual(more, []);
    assert.deepEqual(push, {
      token: vendor.tokenOf(member.id),
      title: 'Ada Lovelace',
      body: `${'x'.repeat(200)}…`,
      badge: 3,
      collapse: push!.collapse,
      data: {
        type: 'message.new',
        conversationId: id,
        messageId: message.id,
        seq: String(message.seq),
        senderId: sender.id,
      },
      priority: 'high',
      ttlSeconds: 604_800,
    });
    await member.api('POST', `/v1/conversations/${other.id}/read`, { seq: 100 });
    await scene.send(sender, id, { text: 'again' });
    await settled(db);
    assert.equal(told(member)[1]!.badge, 2);
    assert.equal(told(member)[1]!.collapse, push!.collapse);
    const elsewhere = await scene.group(sender, [member]);
    await scene.send(sender, elsewhere.id);
    await settled(db);
    assert.notEqual(told(member)[2]!.collapse, push!.collapse);
  });

  it('a group’s name with the sender; a system message; a file', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    await nameIs(sender, 'Ada');
    const { id } = await scene.group(sender, [member], { name: 'Engine' });
    await scene.send(sender, id, { text: 'hi' });
    await settled(db);
    await scene.send(null, id, { text: 'maintenance' });
    await settled(db);
    await scene.send(sender, id, { attachments: [await ready(sender.api, id)] });
    await settled(db);
    assert.deepEqual(
      told(member).map((d) => [d.title, d.body, d.data['senderId']]),
      [
        ['Engine (Ada)', 'hi', sender.id],
        ['Engine', 'maintenance', undefined],
        ['Engine (Ada)', 'sent a file', sender.id],
      ],
    );
  });
});

describe('push: between the send and the push', () => {
  const cases: [string, (at: { id: string; messageId: string; member: Actor }) => Promise<unknown>][] = [
    ['deleted', ({ messageId }) => scene.server('DELETE', `/v1/messages/${messageId}`)],
    ['hard-deleted', ({ messageId }) => scene.server('DELETE', `/v1/messages/${messageId}?hard=true`)],
    ['read', ({ id, member }) => member.api('POST', `/v1/conversations/${id}/read`, { seq: 100 })],
    ['muted', ({ id, member }) => member.api('PUT', `/v1/conversations/${id}/mute`)],
    ['left behind', ({ id, member }) => member.api('DELETE', `/v1/conversations/${id}/members/${member.id}`)],
    ['deactivated', ({ member }) => scene.server('POST', `/v1/users/${member.id}/deactivate`)],
    ['erased', ({ member }) => scene.server('DELETE', `/v1/users/${member.id}`)],
    ['gone with its conversation', ({ id }) => scene.server('DELETE', `/v1/conversations/${id}`)],
  ];
  for (const [what, change] of cases)
    it(`a message ${what} meanwhile is not pushed`, async () => {
      const [sender, member] = [await scene.actor(), await withDevice()];
      const { id } = await scene.group(sender, [member]);
      vendor.trouble.push({ status: 503 });
      const message = await scene.send(sender, id);
      await settled(db);
      assert.equal(vendor.trouble.length, 0, 'it was tried, and waits for the next attempt');
      const answer = (await change({ id, messageId: message.id, member })) as { status: number };
      assert.ok(answer.status < 300, JSON.stringify(answer));
      await pass(db, '1 hour');
      await settled(db);
      assert.equal(told(member).length, 0);
    });

  it('an edited message is pushed as it is now', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    const { id } = await scene.group(sender, [member]);
    vendor.trouble.push({ status: 503 });
    const message = await scene.send(sender, id, { text: 'one' });
    await settled(db);
    await sender.api('PATCH', `/v1/messages/${message.id}`, { text: 'two', expectedVersion: 1 });
    await pass(db, '1 hour');
    await settled(db);
    assert.deepEqual(
      told(member).map((d) => d.body),
      ['two'],
    );
  });
});

describe('push: usage', () => {
  it('sent pushes are counted by environment and day; those that failed are not', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    const { id } = await scene.group(sender, [member]);
    await settled(db);
    const counted = await pushesCounted(db, 'env_dev');
    assert.equal(counted, vendor.delivered.length);
    vendor.trouble.push({ status: 500 });
    await scene.send(sender, id);
    await settled(db);
    assert.equal(await pushesCounted(db, 'env_dev'), counted);
    await pass(db, '1 hour');
    await settled(db);
    assert.equal(await pushesCounted(db, 'env_dev'), counted + 1);
    assert.equal(await pushesCounted(db, 'env_other'), 0);
  });
});

describe('push#mode', () => {
  const mode = (name: string) => parley(service, 'env', 'set', 'env_dev', '--push', name);

  it('push#mode: webhook emits notification.needed { conversationId, messageId, recipientIds, mentionedIds } instead', async () => {
    const receiver = await startReceiver();
    await mode('webhook');
    const { secret } = await addEndpoint(scene.server, receiver.url, ['notification.needed']);
    const [sender, device, bare, online, muted] = await Promise.all([
      withDevice('sender'),
      withDevice('device'),
      scene.actor('bare'),
      scene.actor('online'),
      scene.actor('muted'),
    ]);
    const { id } = await scene.group(sender, [device, bare, online, muted]);
    const socket = await socketOf(online);
    await muted.api('PUT', `/v1/conversations/${id}/mute`);
    const message = await scene.send(sender, id);
    const received = await receiver.next('notification.needed');
    verify(secret, received);
    const { recipientIds, ...rest } = received.data;
    assert.deepEqual(rest, { conversationId: id, messageId: message.id, mentionedIds: [] });
    assert.deepEqual(recipientIds.toSorted(), [bare.id, device.id].toSorted());
    const alone = await scene.group(sender, [online]);
    await scene.send(sender, alone.id);
    await settled(db);
    const second = await scene.send(sender, id);
    await receiver.next('notification.needed', (r) => r.data.messageId === second.id);
    assert.equal(receiver.received.length, 2, 'and none without a recipient');
    assert.equal(told(device).length, 0);
    await socket.close();
    await receiver.close();
  });

  it('off: nothing', async () => {
    await mode('off');
    assert.equal(await listensForPush(db, 'env_dev'), false);
    const [sender, member] = [await scene.actor(), await withDevice()];
    const { id } = await scene.group(sender, [member]);
    await scene.send(sender, id);
    await settled(db);
    assert.equal(told(member).length, 0);
    await mode('providers');
    assert.equal(await listensForPush(db, 'env_dev'), true);
    await scene.send(sender, id);
    await settled(db);
    assert.equal(told(member).length, 1);
  });
});

describe('docs/push.md, pushContent', () => {
  const content = (name: string) => parley(service, 'env', 'set', 'env_dev', '--push-content', name);

  it('name pushes no text, none neither text nor names; it counts from the next push on', async () => {
    const [sender, member] = [await scene.actor(), await withDevice()];
    await nameIs(sender, 'Ada');
    const { id } = await scene.group(sender, [member], { name: 'Engine' });
    for (const name of ['name', 'none', 'full']) {
      await content(name);
      await scene.send(sender, id, { text: 'secret' });
      await settled(db);
    }
    assert.deepEqual(
      told(member).map((d) => [d.title, d.body]),
      [
        ['Engine (Ada)', 'sent a message'],
        ['New message', undefined],
        ['Engine (Ada)', 'secret'],
      ],
    );
    assert.ok(told(member).every((d) => d.data['conversationId'] === id));
  });

  it('any other value is refused', async () => {
    await assert.rejects(content('some'));
  });
});
