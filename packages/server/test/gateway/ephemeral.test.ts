import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestSocket } from '../support/socket.ts';
import { text } from './live-scene.ts';
import { useService } from '../support/use.ts';

/** Typing, receipts and presence (presence#grace, presence#watch, presence#typing, receipts#receipt). */

const { scene } = useService();

const seen = (socket: TestSocket, t: string) => socket.frames.filter((f) => f.t === t).map((f) => f.d);
const members = async (cid: string) => {
  const { body } = await scene.server('GET', `/v1/conversations/${cid}/members`);
  return new Map<string, any>(body.data.map((m: { userId: string }) => [m.userId, m]));
};

test('presence#typing: typing goes to the other members’ live sockets, never to the typist’s own', async () => {
  const typist = await scene.person();
  const typistAgain = await scene.online(typist.actor);
  const mate = await scene.person();
  const mateAgain = await scene.online(mate.actor);
  const outsider = await scene.person();
  const conv = await scene.group(typist.actor, [mate.actor]);
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  typist.socket.send('typing', { cid: conv.id, state: 'stop' });
  const expected = (state: string) => ({ cid: conv.id, userId: typist.actor.id, state });
  for (const socket of [mate.socket, mateAgain]) {
    assert.deepEqual((await socket.ephemeral('typing')).d, expected('start'));
    assert.deepEqual((await socket.ephemeral('typing')).d, expected('stop'));
  }
  for (const socket of [typist.socket, typistAgain, outsider.socket]) {
    await socket.barrier();
    assert.deepEqual(seen(socket, 'typing'), []);
  }
  const events = await scene.events(conv.id);
  assert.deepEqual(
    events.map((e) => e.type),
    ['conversation.created'],
    'typing is not stored',
  );
  await outsider.socket.refused('typing', { cid: conv.id, state: 'start' }, 'not_member');
});

test('receipts#delivered: delivered marks are batched, monotonic, bounded by lastSeq, and end in a receipt to all members', async () => {
  const a = await scene.person();
  const b = await scene.person();
  const conv = await scene.group(a.actor, [b.actor]);
  for (let i = 0; i < 5; i++) await scene.send(a.actor, conv.id);
  const last = conv.lastSeq + 5;
  for (let seq = 1; seq <= 4; seq++) b.socket.send('delivered', { items: [{ cid: conv.id, seq }] });
  b.socket.send('delivered', { items: [{ cid: conv.id, seq: 2 }] });
  const receipt = { cid: conv.id, userId: b.actor.id, lastDeliveredSeq: 4 };
  for (const { socket } of [a, b])
    assert.deepEqual((await socket.ephemeral('receipt', (d) => d.lastDeliveredSeq === 4)).d, receipt);
  assert.equal((await members(conv.id)).get(b.actor.id).lastDeliveredSeq, 4);
  b.socket.send('delivered', { items: [{ cid: conv.id, seq: 1 }] });
  b.socket.send('delivered', { items: [{ cid: conv.id, seq: 1_000_000 }] });
  await a.socket.ephemeral('receipt', (d) => d.lastDeliveredSeq === last);
  assert.equal((await members(conv.id)).get(b.actor.id).lastDeliveredSeq, last);
  const values = seen(a.socket, 'receipt').map((d) => d.lastDeliveredSeq);
  assert.deepEqual(
    values,
    [...values].sort((x, y) => x - y),
  );
});

test('receipts#delivered: marks of strangers and of unknown conversations change nothing', async () => {
  const a = await scene.person();
  const stranger = await scene.person();
  const conv = await scene.group(a.actor, []);
  const own = await scene.group(stranger.actor, []);
  stranger.socket.send('delivered', {
    items: [
      { cid: conv.id, seq: 1 },
      { cid: 'conv_none', seq: 1 },
      { cid: own.id, seq: 1 },
    ],
  });
  await stranger.socket.ephemeral('receipt', (d) => d.cid === own.id);
  assert.deepEqual([...(await members(conv.id)).keys()], [a.actor.id]);
  await a.socket.barrier();
  assert.deepEqual(seen(a.socket, 'receipt'), []);
});

test('messages#own-send: a user’s own send reads along without a receipt of its own', async () => {
  const a = await scene.person();
  const b = await scene.person();
  const conv = await scene.group(a.actor, [b.actor]);
  const { seq } = await a.socket.request('message.send', text(conv.id));
  assert.equal((await members(conv.id)).get(a.actor.id).lastReadSeq, seq);
  await b.socket.request('read', { cid: conv.id, seq });
  for (const { socket } of [a, b]) await socket.ephemeral('receipt', (d) => d.userId === b.actor.id);
  assert.deepEqual(
    seen(b.socket, 'receipt').map((d) => d.userId),
    [b.actor.id],
  );
});

test('presence#watch-visibility: the snapshot tells who is there; strangers and unknown users are dropped silently', async () => {
  const me = await scene.person('me');
  const here = await scene.person('here');
  const away = await scene.actor('away');
  const stranger = await scene.person('stranger');
  await scene.group(me.actor, [here.actor, away]);
  const ask = [me.actor.id, here.actor.id, away.id, stranger.actor.id, 'nobody', here.actor.id];
  const { presence } = await me.socket.request('presence.watch', { userIds: ask });
  assert.deepEqual(
    presence.sort((x: any, y: any) => x.userId.localeCompare(y.userId)),
    [
      { userId: away.id, online: false, lastSeenAt: null },
      { userId: here.actor.id, online: true, lastSeenAt: null },
      { userId: me.actor.id, online: true, lastSeenAt: null },
    ],
  );
  const arrived = await scene.online(away);
  assert.deepEqual((await me.socket.ephemeral('presence')).d, {
    userId: away.id,
    online: true,
    lastSeenAt: null,
  });
  // A second socket changes nothing; nor does a stranger's coming.
  await scene.online(away);
  await scene.online(stranger.actor);
  await arrived.barrier();
  await me.socket.barrier();
  assert.equal(seen(me.socket, 'presence').length, 1);
  assert.deepEqual(seen(here.socket, 'presence'), [], 'only to sockets that watch');
});

test('presence#watch: a watch set of 200 is taken, and each request replaces the one before', async () => {
  const me = await scene.person();
  const one = await scene.actor();
  const two = await scene.actor();
  await scene.group(me.actor, [one, two]);
  const many = [one.id, ...Array.from({ length: 199 }, (_, i) => `unknown-${i}`)];
  assert.equal((await me.socket.request('presence.watch', { userIds: many })).presence.length, 1);
  assert.equal((await me.socket.request('presence.watch', { userIds: [two.id] })).presence.length, 1);
  await scene.online(one);
  await scene.online(two);
  assert.equal((await me.socket.ephemeral('presence')).d.userId, two.id);
  await me.socket.request('presence.watch', { userIds: [] });
  assert.equal(seen(me.socket, 'presence').length, 1);
});

test('presence#watch-visibility: a watch ends with the last shared conversation, whoever leaves, online or not', async () => {
  const me = await scene.person('me');
  const sharesTwo = await scene.actor('two');
  const removed = await scene.actor('removed');
  const deleted = await scene.actor('deleted');
  const group = await scene.group(null, [me.actor, sharesTwo, removed]);
  await scene.group(null, [me.actor, sharesTwo]);
  const doomed = await scene.direct(me.actor, deleted);
  const userIds = [sharesTwo.id, removed.id, deleted.id];
  assert.equal((await me.socket.request('presence.watch', { userIds })).presence.length, 3);
  for (const gone of [sharesTwo, removed])
    assert.equal(
      (await scene.server('DELETE', `/v1/conversations/${group.id}/members/${gone.id}`)).status,
      204,
    );
  await scene.server('DELETE', `/v1/conversations/${doomed.id}`);
  await me.socket.event('conversation.deleted', doomed.id);
  await me.socket.barrier();
  for (const actor of [removed, deleted, sharesTwo]) await scene.online(actor);
  await me.socket.ephemeral('presence', (d) => d.userId === sharesTwo.id);
  await me.socket.barrier();
  assert.deepEqual(
    seen(me.socket, 'presence').map((d) => d.userId),
    [sharesTwo.id],
  );
  const again = await me.socket.request('presence.watch', { userIds });
  assert.deepEqual(
    again.presence.map((p: any) => p.userId),
    [sharesTwo.id],
  );
});

test('presence#watch-visibility: the one who leaves stops hearing of those who stay', async () => {
  const leaver = await scene.person();
  const stays = await scene.actor();
  const group = await scene.group(stays, [leaver.actor]);
  await leaver.socket.request('presence.watch', { userIds: [stays.id, leaver.actor.id] });
  await leaver.actor.api('DELETE', `/v1/conversations/${group.id}/members/${leaver.actor.id}`);
  await leaver.socket.event('member.removed', group.id);
  await leaver.socket.barrier();
  await (await scene.online(stays)).barrier();
  await leaver.socket.barrier();
  assert.deepEqual(seen(leaver.socket, 'presence'), []);
});
