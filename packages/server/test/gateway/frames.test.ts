import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { text } from './live-scene.ts';
import { useService } from '../support/use.ts';
import { createScene } from '../support/scene.ts';

/** Every client frame, its ack and its errors (socket#envelopes, socket#errors-keep). */

const { service, scene } = useService();

test('messages#send: message.send is acknowledged with the committed id, seq and time', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const d = text(conv.id, 'héllo 🎉', { metadata: { a: 1 } });
  const ack = await socket.request('message.send', d);
  assert.equal(ack.clientMsgId, d.clientMsgId);
  assert.equal(ack.seq, conv.lastSeq + 1);
  const { body } = await actor.api('GET', `/v1/messages/${ack.id}`);
  assert.deepEqual(
    [body.text, body.metadata, body.senderId, body.seq, body.createdAt],
    ['héllo 🎉', { a: 1 }, actor.id, ack.seq, ack.createdAt],
  );
  const reply = await socket.request('message.send', text(conv.id, 'yes', { replyTo: ack.id }));
  assert.equal((await actor.api('GET', `/v1/messages/${reply.id}`)).body.replyTo, ack.id);
});

test('socket#envelopes: request ids may be numbers, and acks carry them as they came', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const ack = await socket.ask('message.send', text(conv.id), 7);
  assert.equal(ack.re, 7);
});

test('messages#dedup: a duplicate clientMsgId returns the original ack, over the socket and over REST', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const d = text(conv.id, 'once');
  const first = await socket.request('message.send', d);
  assert.deepEqual(await socket.request('message.send', d), first);
  const rest = await actor.api('POST', `/v1/conversations/${conv.id}/messages`, {
    clientMsgId: d.clientMsgId,
    text: 'once',
  });
  assert.deepEqual([rest.status, rest.body.id, rest.body.seq], [201, first.id, first.seq]);
  assert.equal((await scene.events(conv.id)).filter((e) => e.type === 'message.new').length, 1);
});

test('messages#dedup: REST first, then the socket with the same clientMsgId: one message, and one message.new', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const clientMsgId = randomUUID();
  const sent = await scene.send(actor, conv.id, { clientMsgId, text: 'REST' });
  const ack = await socket.request('message.send', { cid: conv.id, clientMsgId, text: 'socket' });
  assert.deepEqual([ack.id, ack.seq, ack.createdAt], [sent.id, sent.seq, sent.createdAt]);
  await socket.barrier();
  assert.equal(socket.events(conv.id).filter((f) => f.e === 'message.new').length, 1);
});

test('messages#dedup: the same clientMsgId at once on many sockets and over REST commits one message', async () => {
  const { actor, socket } = await scene.person();
  const second = await scene.online(actor);
  const conv = await scene.group(actor, []);
  const d = text(conv.id, 'race');
  const acks = await Promise.all([
    ...Array.from({ length: 5 }, () => socket.request('message.send', d)),
    ...Array.from({ length: 5 }, () => second.request('message.send', d)),
    scene.send(actor, conv.id, { clientMsgId: d.clientMsgId, text: 'race' }),
  ]);
  assert.equal(new Set(acks.map((a) => a.id)).size, 1);
  await second.barrier();
  assert.equal(second.events(conv.id).filter((f) => f.e === 'message.new').length, 1);
});

test('socket#errors-keep: errors of message.send are error frames and keep the connection', async () => {
  const { actor, socket } = await scene.person();
  const stranger = await scene.person();
  const conv = await scene.group(actor, []);
  const elsewhere = await scene.group(actor, []);
  const foreign = await createScene(service.url, 'other').group(null, [actor]);
  const message = await scene.send(actor, elsewhere.id);
  await stranger.socket.refused('message.send', text(conv.id), 'not_member');
  await socket.refused('message.send', text('conv_nowhere'), 'not_found');
  await socket.refused('message.send', text(foreign.id), 'not_found');
  await socket.refused('message.send', text(conv.id, 'a', { replyTo: message.id }), 'invalid_request');
  await socket.refused(
    'message.send',
    text(conv.id, 'a', { attachments: ['att_none'] }),
    'attachment_not_ready',
  );
  await socket.refused('message.send', text(conv.id, 'x'.repeat(5_001)), 'text_too_long');
  const deep = { a: { b: { c: { d: { e: {} } } } } };
  await socket.refused('message.send', text(conv.id, 'a', { metadata: deep }), 'metadata_too_large');
  await socket.refused(
    'message.send',
    text(conv.id, 'a', { metadata: { a: 'x'.repeat(4_096) } }),
    'metadata_too_large',
  );
  await socket.refused('message.send', { cid: conv.id, clientMsgId: 'x' }, 'invalid_request');
  assert.equal(
    (await socket.request('message.send', text(conv.id, '€'.repeat(5_000)))).seq,
    conv.lastSeq + 1,
  );
  assert.equal((await scene.events(conv.id)).at(-1).seq, conv.lastSeq + 1, 'refused sends change nothing');
});

test('socket#invalid-frame: unknown frames, unknown fields and wrong types are invalid_frame; the connection is kept', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const good = text(conv.id);
  const { clientMsgId, ...without } = good;
  const cases: [string, unknown][] = [
    ['message.fetch', {}],
    ['toString', {}],
    ['__proto__', {}],
    ['message.send', { ...good, colour: 'red' }],
    ['message.send', { ...good, senderId: 'somebody' }],
    ['message.send', { ...good, text: 5 }],
    ['message.send', { ...good, text: 'a\0b' }],
    ['message.send', without],
    ['message.send', { ...good, clientMsgId: 'x'.repeat(129) }],
    ['message.send', []],
    ['message.send', null],
    ['message.update', { id: 'msg_x', text: 'a' }],
    ['message.delete', { id: 'msg_x', hard: true }],
    ['read', { cid: conv.id, seq: -1 }],
    ['read', { cid: conv.id, seq: '1' }],
    ['read', { cid: conv.id, seq: 1.5 }],
    ['sync', {}],
    ['sync', { cursor: 3 }],
    ['presence.watch', { userIds: Array.from({ length: 201 }, (_, i) => `u${i}`) }],
    ['presence.watch', { userIds: ['not a user id'] }],
    ['token.refresh', {}],
    ['typing', { cid: conv.id, state: 'maybe' }],
    ['delivered', { items: [{ cid: conv.id, seq: 1, x: 1 }] }],
    ['delivered', { items: Array.from({ length: 201 }, () => ({ cid: 'c', seq: 1 })) }],
    ['hb', { x: 1 }],
  ];
  for (const [t, d] of cases) await socket.refused(t, d, 'invalid_frame');
  for (const frame of [
    '{"t":"sync","id":"a","d":{"cursor":null},"extra":1}',
    '{"t":"sync","id":"a","d":{"cursor":null},"__proto__":{"x":1}}',
    `{"t":"sync","id":"a","d":{"cursor":null,"__proto__":null}}`,
  ]) {
    socket.raw(frame);
    assert.equal((await socket.next((f) => f.t === 'error' && f.re === 'a')).code, 'invalid_frame');
  }
  for (const frame of ['{}', '[]', '3', 'null', '"hb"', '{"t":5}', '{"t":"sync","d":{"cursor":null}}']) {
    socket.raw(frame);
    const error = await socket.next((f) => f.t === 'error' && f.re === undefined);
    assert.equal(error.code, 'invalid_frame');
  }
  await socket.barrier();
});

test('messages#edit: message.update acks the event seq and the new version; version_conflict on mismatch', async () => {
  const { actor, socket } = await scene.person();
  const mate = await scene.person();
  const conv = await scene.group(actor, [mate.actor]);
  const sent = await socket.request('message.send', text(conv.id, 'one'));
  const ack = await socket.request('message.update', { id: sent.id, text: 'two', expectedVersion: 1 });
  assert.deepEqual([ack.id, ack.seq, ack.version], [sent.id, sent.seq + 1, 2]);
  const event = await mate.socket.event('message.updated', conv.id);
  assert.deepEqual([event.seq, event.d.message.seq, event.d.message.text], [ack.seq, sent.seq, 'two']);
  assert.equal(event.d.message.editedAt, ack.editedAt);
  await socket.refused('message.update', { id: sent.id, text: 'x', expectedVersion: 1 }, 'version_conflict');
  await mate.socket.refused('message.update', { id: sent.id, text: 'x', expectedVersion: 2 }, 'forbidden');
  await socket.refused('message.update', { id: 'msg_none', text: 'x', expectedVersion: 1 }, 'not_found');
  await socket.refused(
    'message.update',
    { id: sent.id, text: 'x'.repeat(5_001), expectedVersion: 2 },
    'text_too_long',
  );
  const outsider = await scene.person();
  const refusal = await outsider.socket.ask('message.update', { id: sent.id, text: 'x', expectedVersion: 2 });
  assert.ok(['not_member', 'not_found', 'forbidden'].includes(refusal.code), refusal.code);
});

test('messages#delete: message.delete acks the event seq and deletedAt; the author and the owner may', async () => {
  const owner = await scene.person();
  const member = await scene.person();
  const other = await scene.person();
  const conv = await scene.group(owner.actor, [member.actor, other.actor]);
  const first = await member.socket.request('message.send', text(conv.id, 'mine'));
  const second = await member.socket.request('message.send', text(conv.id, 'mine too'));
  await other.socket.refused('message.delete', { id: first.id }, 'forbidden');
  const ack = await member.socket.request('message.delete', { id: first.id });
  assert.deepEqual([ack.id, ack.seq], [first.id, second.seq + 1]);
  const event = await other.socket.event('message.deleted', conv.id);
  assert.deepEqual(
    [event.seq, event.d.id, event.d.deletedAt, event.d.hard],
    [ack.seq, first.id, ack.deletedAt, false],
  );
  const byOwner = await owner.socket.request('message.delete', { id: second.id });
  assert.equal(byOwner.seq, ack.seq + 1);
  const again = await member.socket.request('message.delete', { id: first.id });
  assert.equal(again.deletedAt, ack.deletedAt, 'deleting a tombstone again changes nothing');
  assert.equal((await scene.events(conv.id)).at(-1).seq, byOwner.seq, 'and emits nothing');
  await member.socket.refused('message.delete', { id: 'msg_none' }, 'not_found');
});

test('receipts#read: read is monotonic, never beyond lastSeq, and refuses strangers', async () => {
  const { actor, socket } = await scene.person();
  const mate = await scene.person();
  const conv = await scene.group(mate.actor, [actor]);
  for (let i = 0; i < 3; i++) await scene.send(mate.actor, conv.id);
  const last = conv.lastSeq + 3;
  for (const seq of [2, 1])
    assert.deepEqual(await socket.request('read', { cid: conv.id, seq }), {
      cid: conv.id,
      lastReadSeq: 2,
      mentionUnreadCount: 0,
    });
  assert.equal((await scene.item(actor, conv.id)).unreadCount, 2);
  assert.equal((await socket.request('read', { cid: conv.id, seq: 999 })).lastReadSeq, last);
  assert.equal((await scene.item(actor, conv.id)).unreadCount, 0);
  await (await scene.person()).socket.refused('read', { cid: conv.id, seq: 1 }, 'not_member');
  await socket.refused('read', { cid: 'conv_none', seq: 1 }, 'not_found');
});

test('events#sync: sync answers as POST /v1/sync does', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const full = await socket.request('sync', { cursor: null });
  const rest = (await actor.api('POST', '/v1/sync', { cursor: null })).body;
  assert.deepEqual(full.conversations, rest.conversations);
  assert.deepEqual(full.conversations, [{ id: conv.id, lastSeq: conv.lastSeq, unreadCount: 0 }]);
  assert.deepEqual([full.removed, full.fullReload], [[], false]);
  const mate = await scene.actor();
  const next = await scene.group(mate, [actor]);
  await scene.send(mate, next.id);
  const since = await socket.request('sync', { cursor: full.cursor });
  const item = since.conversations.find((c: { id: string }) => c.id === next.id);
  assert.deepEqual(item, { id: next.id, lastSeq: next.lastSeq + 1, unreadCount: 1 });
  await socket.refused('sync', { cursor: 'made up' }, 'invalid_request');
});

test('socket#envelopes: hb, typing and delivered have no ack, with or without an id', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  socket.send('hb');
  socket.send('hb', {});
  socket.send('hb', {}, 'h');
  socket.send('typing', { cid: conv.id, state: 'start' }, 't');
  socket.send('delivered', { items: [{ cid: conv.id, seq: 1 }] }, 'd');
  socket.send('delivered', { items: [] });
  await socket.barrier();
  assert.deepEqual(
    socket.frames.filter((f) => ['h', 't', 'd'].includes(f.re) || f.t === 'error'),
    [],
  );
});
