import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertContiguous, text } from './live-scene.ts';
import { useService } from '../support/use.ts';
import { createScene } from '../support/scene.ts';

/** Every event of the seq stream, on every live socket of every member (events#types). */

const { service, scene } = useService();

test('events#delivery-order: each change reaches all sockets of all members with contiguous seqs, as REST tells it', async () => {
  const owner = await scene.person('owner');
  const member = await scene.person('member');
  const ownerAgain = await scene.online(owner.actor);
  const late = await scene.person('late');
  const conv = await scene.group(owner.actor, [member.actor], { name: 'one' });
  const path = `/v1/conversations/${conv.id}`;

  const sent = await member.socket.request('message.send', text(conv.id, 'hi'));
  await scene.send(null, conv.id, { text: 'system' });
  await owner.actor.api('PATCH', path, { name: 'two' });
  await member.socket.request('message.update', { id: sent.id, text: 'hi!', expectedVersion: 1 });
  await owner.actor.api('POST', `${path}/members`, { userIds: [late.actor.id] });
  await scene.server('PATCH', `${path}/members/${member.actor.id}`, { role: 'owner' });
  await member.actor.api('DELETE', `/v1/messages/${sent.id}`);
  const second = await scene.send(owner.actor, conv.id, { text: 'gone soon' });
  await scene.server('DELETE', `/v1/messages/${second.id}?hard=true`);
  await late.actor.api('DELETE', `${path}/members/${late.actor.id}`);
  await scene.send(owner.actor, conv.id, { text: 'bye' });
  const kept = await scene.events(conv.id);
  assert.equal((await scene.server('DELETE', path)).status, 204);

  const everything = [
    ['conversation.created', 1],
    ['message.new', 2],
    ['message.new', 3],
    ['conversation.updated', 4],
    ['message.updated', 5],
    ['member.added', 6],
    ['member.updated', 7],
    ['message.deleted', 8],
    ['message.new', 9],
    ['message.deleted', 10],
    ['member.removed', 11],
    ['message.new', 12],
    ['conversation.deleted', 13],
  ];
  for (const socket of [owner.socket, ownerAgain, member.socket]) {
    await socket.event('conversation.deleted', conv.id);
    assert.deepEqual(
      socket.events(conv.id).map((f) => [f.e, f.seq]),
      everything,
    );
  }
  await late.socket.barrier();
  assert.deepEqual(
    late.socket.events(conv.id).map((f) => [f.e, f.seq]),
    everything.slice(5, 11),
    'from its own member.added to its own member.removed, nothing before and nothing after',
  );

  const d = (seq: number) => member.socket.events(conv.id)[seq - 1].d;
  assert.deepEqual(
    new Map(d(1).conversation.members.map((m: any) => [m.userId, m.role])),
    new Map([
      [owner.actor.id, 'owner'],
      [member.actor.id, 'member'],
    ]),
  );
  assert.equal(d(3).message.senderId, null);
  assert.deepEqual(d(4), { changes: { name: 'two' }, actorId: owner.actor.id });
  assert.deepEqual([d(5).message.text, d(5).message.version, d(5).message.seq], ['hi!', 2, 2]);
  assert.deepEqual(d(6), {
    userIds: [late.actor.id],
    userId: late.actor.id,
    actorId: owner.actor.id,
    via: 'added',
  });
  assert.deepEqual(d(7), { userId: member.actor.id, role: 'owner', actorId: null });
  assert.deepEqual([d(8).id, d(8).hard], [sent.id, false]);
  assert.deepEqual([d(10).id, d(10).hard], [second.id, true]);
  assert.deepEqual(d(11), { userId: late.actor.id, actorId: late.actor.id, reason: 'left' });

  // What REST tells is the same, except for what was deleted since.
  for (const { seq, type, createdAt: _, ...rest } of kept) {
    assert.equal(type, everything[seq - 1]![0]);
    const { clientMsgId, ...live } = d(seq);
    if (type === 'message.new')
      assert.equal(clientMsgId === null ? null : typeof clientMsgId, live.message.senderId ? 'string' : null);
    if (![1, 2, 5, 9].includes(seq)) assert.deepEqual(rest, live, `${type} ${seq}`);
  }
});

test('conversations#direct-revived: a direct conversation that was deleted comes back with the next seq, to both sides', async () => {
  const a = await scene.person();
  const b = await scene.person();
  const conv = await scene.direct(a.actor, b.actor);
  await a.socket.request('message.send', text(conv.id, 'first'));
  await scene.server('DELETE', `/v1/conversations/${conv.id}`);
  await a.socket.refused('message.send', text(conv.id), 'not_found');
  const again = await scene.server('POST', '/v1/conversations', {
    type: 'direct',
    members: [a.actor.id, b.actor.id],
  });
  assert.equal(again.body.id, conv.id);
  await b.socket.request('message.send', text(conv.id, 'and on'));
  for (const { socket } of [a, b]) {
    await socket.next((f) => f.e === 'message.new' && f.d.message.text === 'and on');
    assert.deepEqual(
      socket.events(conv.id).map((f) => [f.e, f.seq]),
      [
        ['conversation.created', 1],
        ['message.new', 2],
        ['conversation.deleted', 3],
        ['conversation.created', 4],
        ['message.new', 5],
      ],
    );
  }
});

test('members#remove: a removed member gets its own member.removed and nothing after it, not even typing or receipts', async () => {
  const owner = await scene.person();
  const gone = await scene.person();
  const conv = await scene.group(owner.actor, [gone.actor]);
  const sockets = [gone.socket, await scene.online(gone.actor)];
  const path = `/v1/conversations/${conv.id}/members/${gone.actor.id}`;
  assert.equal((await owner.actor.api('DELETE', path)).status, 204);
  for (const socket of sockets) {
    const event = await socket.event('member.removed', conv.id);
    assert.deepEqual(event.d, { userId: gone.actor.id, actorId: owner.actor.id, reason: 'removed' });
  }
  owner.socket.send('typing', { cid: conv.id, state: 'start' });
  const { seq } = await owner.socket.request('message.send', text(conv.id));
  await owner.socket.request('read', { cid: conv.id, seq });
  await owner.socket.event('message.new', conv.id);
  for (const socket of sockets) {
    await socket.refused('typing', { cid: conv.id, state: 'start' }, 'not_member');
    await socket.barrier();
    const after = socket.frames.slice(socket.frames.findIndex((f) => f.e === 'member.removed') + 1);
    assert.deepEqual(
      after.filter((f) => f.cid === conv.id || f.d?.cid === conv.id),
      [],
    );
  }
  await scene.server('POST', `/v1/conversations/${conv.id}/members`, { userIds: [gone.actor.id] });
  await owner.socket.request('message.send', text(conv.id, 'welcome back'));
  for (const socket of sockets) {
    assert.equal((await socket.event('member.added', conv.id)).d.actorId, null);
    assert.equal((await socket.event('message.new', conv.id)).d.message.text, 'welcome back');
  }
});

test('events#delivery-order: events of other conversations and other environments stay away', async () => {
  const a = await scene.person();
  const outsider = await scene.person();
  const namesake = await createScene(service.url, 'other').online(a.actor);
  const conv = await scene.group(a.actor, []);
  await a.socket.request('message.send', text(conv.id));
  await a.socket.event('message.new', conv.id);
  for (const socket of [outsider.socket, namesake]) {
    await socket.barrier();
    assert.deepEqual(socket.events(), []);
  }
});

test('events#delivery-order: many senders at once, over REST and sockets: every socket sees one order without a gap', async () => {
  const people = await Promise.all(Array.from({ length: 6 }, () => scene.person()));
  const conv = await scene.group(
    null,
    people.map((p) => p.actor),
  );
  const sends = people.flatMap(({ actor, socket }, p) =>
    Array.from({ length: 15 }, (_, i) =>
      i % 3 === 0
        ? scene.send(actor, conv.id, { text: `${p}.${i}` })
        : socket.request('message.send', text(conv.id, `${p}.${i}`)),
    ),
  );
  const renames = Array.from({ length: 10 }, (_, i) =>
    scene.server('PATCH', `/v1/conversations/${conv.id}`, { name: `name ${i}` }),
  );
  await Promise.all([...sends, ...renames]);
  const last = (await scene.server('GET', `/v1/conversations/${conv.id}`)).body.lastSeq;
  assert.equal(last, 1 + 90 + 10);
  const order = [];
  for (const { socket } of people) {
    await socket.next((f) => f.t === 'event' && f.seq === last, `seq ${last}`);
    assertContiguous(socket, conv.id);
    order.push(socket.events(conv.id).map((f) => f.d.message?.id ?? f.e));
  }
  for (const seen of order) assert.deepEqual(seen, order[0]);
});

test('socket#frame-size: frames that the server pushes may be larger than 16 KB', async () => {
  const a = await scene.person();
  const conv = await scene.group(a.actor, []);
  const huge = '🎉'.repeat(5_000);
  const metadata = { note: 'x'.repeat(3_900) };
  const sent = await scene.send(a.actor, conv.id, { text: huge, metadata });
  const event = await a.socket.event('message.new', conv.id);
  assert.deepEqual([event.seq, event.d.message.text, event.d.message.metadata], [sent.seq, huge, metadata]);
  assert.ok(Buffer.byteLength(JSON.stringify(event)) > 20_000);
});

test('users#erasure-delete: a user erased with its messages leaves the group before everyone’s eyes', async () => {
  const stays = await scene.person();
  const goes = await scene.person();
  const conv = await scene.group(stays.actor, [goes.actor]);
  await goes.socket.request('message.send', text(conv.id, 'forget me'));
  assert.equal((await scene.server('DELETE', `/v1/users/${goes.actor.id}?messages=delete`)).status, 204);
  assert.equal((await goes.socket.closed).code, 4001);
  const removed = await stays.socket.event('member.removed', conv.id);
  assert.equal(removed.d.reason, 'removed');
  await stays.socket.barrier();
  assertContiguous(stays.socket, conv.id);
});
