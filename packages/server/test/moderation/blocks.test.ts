import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { act, pretendNode, start, stateOf } from '../calls/tools.ts';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import type { Received } from '../webhooks/receiver.ts';

/** blocks.md, over REST and the socket. */

const { scene, server, sql, db } = useService();
setUp(() => pretendNode(db));

const block = (by: Actor, who: Actor) => by.api('PUT', `/v1/blocks/${who.id}`, {});
const unblock = (by: Actor, who: Actor) => by.api('DELETE', `/v1/blocks/${who.id}`);
const say = (by: Actor, cid: string, clientMsgId: string = randomUUID()) =>
  by.api('POST', `/v1/conversations/${cid}/messages`, { text: 'hello', clientMsgId });
const pair = async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  return { anna, ben, cid };
};
const flagsOf = async (cid: string) =>
  (await sql('SELECT flags FROM conversations WHERE id = $1', [cid]))[0]!['flags'] as number;

test('blocks#direct: both are refused in every way of writing, whatever device, and reading and deleting one’s own stay', async () => {
  const { anna, ben, cid } = await pair();
  const [phone, laptop] = await Promise.all([scene.online(ben), scene.online(ben)]);
  const mine = await scene.send(anna, cid, { text: 'mine' });
  const theirs = await scene.send(ben, cid, { text: 'theirs', clientMsgId: 'before' });
  await ben.api('PUT', `/v1/messages/${mine.id}/reactions/x`, {});
  const picture = { conversationId: cid, filename: 'a.png', size: 10, contentType: 'image/png' };
  const ticket = (await ben.api('POST', '/v1/uploads', picture)).body;
  const call = await start(anna, cid);
  const { lastSeq } = (await anna.api('GET', `/v1/conversations/${cid}`)).body;

  const blocked = await block(anna, ben);
  assert.equal(blocked.status, 200);
  assert.deepEqual(Object.keys(blocked.body).sort(), ['blockedAt', 'userId']);
  assert.equal((await server('GET', `/v1/calls/${call.id}`)).body.status, 'ended', 'it rings no more');

  for (const [who, id] of [
    [anna, mine.id],
    [ben, theirs.id],
  ] as const) {
    assertError(await say(who, cid), 403, 'blocked');
    assertError(
      await who.api('POST', `/v1/conversations/${cid}/messages`, {
        text: 'reply',
        replyTo: mine.id,
        clientMsgId: randomUUID(),
      }),
      403,
      'blocked',
    );
    assertError(
      await who.api('PATCH', `/v1/messages/${id}`, { text: 'other', expectedVersion: 1 }),
      403,
      'blocked',
    );
    assertError(await who.api('PUT', `/v1/messages/${mine.id}/reactions/y`, {}), 403, 'blocked');
    assertError(await who.api('POST', '/v1/uploads', picture), 403, 'blocked');
    assertError(await who.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' }), 403, 'blocked');
    assertError(
      await who.api('POST', '/v1/conversations', { type: 'direct', members: [anna.id, ben.id] }),
      403,
      'blocked',
    );
    assert.equal((await who.api('GET', `/v1/conversations/${cid}/messages`)).body.data.length, 2);
    assert.equal((await who.api('POST', `/v1/conversations/${cid}/read`, { seq: 2 })).status, 200);
  }
  assertError(await ben.api('POST', `/v1/uploads/${ticket.attachmentId}/complete`), 403, 'blocked');
  for (const socket of [phone, laptop]) {
    await socket.refused('message.send', { cid, text: 'x', clientMsgId: randomUUID() }, 'blocked');
    await socket.refused('message.update', { id: theirs.id, text: 'x', expectedVersion: 1 }, 'blocked');
    await socket.refused('reaction.set', { id: mine.id, emoji: 'z', on: true }, 'blocked');
  }
  // A repetition is answered as it was at first; a batch of many finds each its own answer.
  const again = await say(ben, cid, 'before');
  assert.equal(again.status, 201);
  assert.equal(again.body.id, theirs.id);
  const many = await Promise.all([
    ...Array.from({ length: 6 }, () => say(ben, cid)),
    say(ben, cid, 'before'),
    server('POST', `/v1/conversations/${cid}/messages`, { text: 'from the system' }),
  ]);
  assert.deepEqual(
    many.map((a) => a.status),
    [403, 403, 403, 403, 403, 403, 201, 201],
  );
  const stored = (await scene.events(cid, lastSeq)).filter((e) => e.type === 'message.new');
  assert.deepEqual(
    stored.map((e) => e.message.text),
    ['from the system'],
  );
  assert.equal((await ben.api('DELETE', `/v1/messages/${mine.id}/reactions/x`)).status, 200);
  assert.equal((await ben.api('DELETE', `/v1/messages/${theirs.id}`)).status, 200);

  // Nobody hears it typing.
  const listener = await scene.online(anna);
  phone.send('typing', { cid, state: 'start' });
  await phone.barrier();
  assert.equal((await unblock(anna, ben)).status, 204);
  await until(async () => (await flagsOf(cid)) === 1, 'the flag is gone');
  assert.equal((await say(ben, cid)).status, 201);
  await listener.event('message.new', cid);
  assert.ok(listener.frames.every((f) => f.t !== 'typing'));
  listener.send('typing', { cid, state: 'start' });
  await laptop.ephemeral('typing', (d) => d.cid === cid);
});

test('blocks#both: the conversation opens when neither blocks the other, and is closed from the start where one does', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  await block(anna, ben);
  const body = { type: 'direct', members: [anna.id, ben.id] };
  assertError(await ben.api('POST', '/v1/conversations', body), 403, 'blocked');
  assertError(await anna.api('POST', '/v1/conversations', body), 403, 'blocked');
  const { id: cid } = await scene.direct(anna, ben);
  assertError(await say(anna, cid), 403, 'blocked');
  await block(ben, anna);
  await unblock(anna, ben);
  assertError(await say(anna, cid), 403, 'blocked');
  await server('DELETE', `/v1/conversations/${cid}`);
  assertError(await ben.api('POST', '/v1/conversations', body), 403, 'blocked');
  await unblock(ben, anna);
  assert.equal((await ben.api('POST', '/v1/conversations', body)).status, 201);
  assert.equal((await say(anna, cid)).status, 201);
  assert.equal(await flagsOf(cid), 0);
});

test('blocks#groups, T6.2: both stay and see everything; the blocked one cannot add the other, and its calls do not ring there', async () => {
  const [anna, ben, cleo] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(ben, [anna, cleo]);
  await block(anna, ben);
  const { id } = await scene.send(ben, cid, { text: 'to all' });
  assert.equal((await anna.api('PUT', `/v1/messages/${id}/reactions/x`, {})).status, 200);
  assert.deepEqual(
    [(await scene.item(anna, cid)).unreadCount, (await scene.item(cleo, cid)).unreadCount],
    [1, 1],
  );
  const { id: other } = await scene.group(ben, [cleo]);
  const before = (await server('GET', `/v1/conversations/${other}/members`)).body.data.length;
  const dora = await scene.actor();
  assertError(
    await ben.api('POST', `/v1/conversations/${other}/members`, { userIds: [dora.id, anna.id] }),
    403,
    'blocked',
  );
  assert.equal((await server('GET', `/v1/conversations/${other}/members`)).body.data.length, before);
  const group = { type: 'group', members: [anna.id, cleo.id] };
  assertError(await ben.api('POST', '/v1/conversations', group), 403, 'blocked');
  assert.equal((await anna.api('POST', '/v1/conversations', { ...group, members: [ben.id] })).status, 201);
  assert.equal(
    (await server('POST', `/v1/conversations/${other}/members`, { userIds: [anna.id] })).status,
    200,
    'a server is not bound',
  );
  const call = await start(ben, cid);
  assert.deepEqual([stateOf(call, anna), stateOf(call, cleo)], ['missed', 'ringing']);
  assert.equal((await act(anna, call.id, 'join')).status, 200, 'it may join');
});

test('blocks#presence, T6.2: the blocked one sees nothing of the other, from the moment of the block', async () => {
  const { anna, ben } = await pair();
  const [watcher, own] = await Promise.all([scene.online(ben), scene.online(anna)]);
  const watch = async (by = watcher, of = anna) =>
    (await by.request('presence.watch', { userIds: [of.id] })).presence.length as number;
  assert.equal(await watch(), 1);
  await block(anna, ben);
  await watcher.barrier();
  const seen = () => watcher.frames.filter((f) => f.t === 'presence').length;
  const before = seen();
  await own.close();
  const back = await scene.online(anna);
  await server('PUT', `/v1/users/${anna.id}`, {});
  await watcher.barrier();
  assert.equal(await watch(), 0);
  assert.equal(await watch(back, ben), 1, 'who blocks sees');
  assert.equal(seen(), before);
  await unblock(anna, ben);
  assert.equal(await watch(), 1);
});

test('blocks#list: newest first, in pages; bad input is refused, and nobody learns who blocks them', async () => {
  const [anna, ...others] = await Promise.all([
    scene.actor('anna'),
    ...Array.from({ length: 5 }, () => scene.actor()),
  ]);
  for (const one of others) await block(anna!, one);
  const first = await block(anna!, others[0]!);
  assert.equal((await block(anna!, others[0]!)).body.blockedAt, first.body.blockedAt);
  const seen: string[] = [];
  for (let cursor = ''; ;) {
    const { body } = await anna!.api('GET', `/v1/blocks?limit=2${cursor}`);
    seen.push(...body.data.map((b: any) => b.userId));
    if (body.nextCursor === null) break;
    cursor = `&cursor=${body.nextCursor}`;
  }
  assert.deepEqual(seen, others.map((o) => o.id).reverse());
  assert.deepEqual((await others[0]!.api('GET', '/v1/blocks')).body.data, []);
  assertError(await block(anna!, anna!), 400, 'invalid_request', 'userId');
  assertError(await anna!.api('PUT', '/v1/blocks/nobody-at-all', {}), 404, 'not_found');
  assertError(
    await anna!.api('PUT', `/v1/blocks/${others[0]!.id}`, { byUserId: others[1]!.id }),
    403,
    'forbidden',
    'byUserId',
  );
  assertError(await server('PUT', `/v1/blocks/${others[0]!.id}`, {}), 400, 'invalid_request', 'byUserId');
  assertError(await server('GET', '/v1/blocks'), 400, 'invalid_request', 'userId');
  assertError(await anna!.api('GET', '/v1/blocks?cursor=e30'), 400, 'invalid_request', 'cursor');
  assert.equal((await unblock(anna!, others[0]!)).status, 204);
  assert.equal((await unblock(anna!, others[0]!)).status, 204, 'also if it was not blocked');
  const of = (await server('GET', `/v1/blocks?userId=${anna!.id}`)).body.data;
  assert.equal(of.length, 4);
  // The limit is exact: the rest is made by hand.
  await sql(
    `INSERT INTO blocks (env, usr, blocked, at) SELECT u.env, u.no, -n, now() FROM users u, generate_series(1, $2::int) n
     WHERE u.id = $1`,
    [anna!.id, limits.blocksPerUser - 5],
  );
  const racing = await Promise.all(
    [others[0]!, await scene.actor(), await scene.actor()].map((o) => block(anna!, o)),
  );
  assert.deepEqual(racing.map((a) => a.status).sort(), [200, 409, 409]);
  assertError(
    racing.find((a) => a.status === 409)!,
    409,
    'limit_reached',
    'userId',
  );
});

test('blocks#personal: all devices of the one who blocks are told, nobody else; the webhook names both', async () => {
  const receiver = await startReceiver();
  try {
    const { anna, ben, cid } = await pair();
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['user.blocked'] });
    const [phone, laptop, other] = await Promise.all([
      scene.online(anna),
      scene.online(anna),
      scene.online(ben),
    ]);
    const { personalRev } = phone.hello;
    const { body } = await server('PUT', `/v1/blocks/${ben.id}`, { byUserId: anna.id });
    await server('PUT', `/v1/blocks/${ben.id}`, { byUserId: anna.id });
    await server('DELETE', `/v1/blocks/${ben.id}?byUserId=${anna.id}`);
    for (const socket of [phone, laptop]) {
      assert.deepEqual((await socket.ephemeral('personal')).d, {
        rev: personalRev + 1,
        kind: 'block',
        d: body,
      });
      assert.deepEqual((await socket.ephemeral('personal')).d, {
        rev: personalRev + 2,
        kind: 'block',
        d: { userId: ben.id, blockedAt: null },
      });
    }
    for (const blocked of [true, false]) {
      const is = ({ data: d }: Received) => d.userId === anna.id && d.blocked === blocked;
      const { data } = await receiver.next('user.blocked', is);
      assert.deepEqual(data, { userId: anna.id, blockedId: ben.id, blocked });
    }
    await other.barrier();
    assert.ok(other.frames.every((f) => f.t !== 'personal'));
    assert.equal((await scene.item(ben, cid)).unreadCount, 0);
  } finally {
    await receiver.close();
  }
});

test('blocks#erasure: an erased user leaves no row, of its own or about it', async () => {
  const [anna, ben, cleo] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  const [{ no }] = (await sql('SELECT no FROM users WHERE id = $1', [anna.id])) as [{ no: number }];
  await block(anna, ben);
  await block(cleo, anna);
  assert.equal((await server('DELETE', `/v1/users/${anna.id}`)).status, 204);
  assert.deepEqual(await sql('SELECT 1 FROM blocks WHERE usr = $1 OR blocked = $1', [no]), []);
  assert.deepEqual((await cleo.api('GET', '/v1/blocks')).body.data, []);
});
