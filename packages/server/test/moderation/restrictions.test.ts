import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { act, pretendNode, start, stateOf } from '../calls/tools.ts';
import { until } from '../push-feature/tools.ts';
import { assertError, createApi } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import type { Received } from '../webhooks/receiver.ts';

/** restrictions.md, over REST and the socket. */

const { service, scene, server, sql, db } = useService();
setUp(() => pretendNode(db));

const soon = (ms: number): string => new Date(Date.now() + ms).toISOString();
const say = (by: Actor, cid: string, clientMsgId: string = randomUUID()) =>
  by.api('POST', `/v1/conversations/${cid}/messages`, { text: 'hello', clientMsgId });
const restrict = (by: Api, cid: string, who: Actor, fields: object) =>
  by('PUT', `/v1/conversations/${cid}/restrictions/${who.id}`, fields);
const lift = (by: Api, cid: string, who: Actor) =>
  by('DELETE', `/v1/conversations/${cid}/restrictions/${who.id}`);
async function group() {
  const [owner, moderator, member, other] = (await Promise.all(
    ['owner', 'moderator', 'member', 'other'].map((name) => scene.actor(name)),
  )) as [Actor, Actor, Actor, Actor];
  const { id: cid } = await scene.group(owner, [moderator, member, other]);
  await server('PATCH', `/v1/conversations/${cid}/members/${moderator.id}`, { role: 'moderator' });
  return { owner, moderator, member, other, cid };
}

/** Everything that a silenced user may not do in the conversation. */
async function assertSilent(who: Actor, cid: string, own: string, ends: boolean): Promise<void> {
  const socket = await scene.online(who);
  const refused = [
    await say(who, cid),
    await who.api('PATCH', `/v1/messages/${own}`, { text: 'y', expectedVersion: 1 }),
    await who.api('PUT', `/v1/messages/${own}/reactions/x`, {}),
    await who.api('PUT', `/v1/messages/${own}/pin`),
    await who.api('DELETE', `/v1/messages/${own}/pin`),
    await who.api('POST', '/v1/uploads', {
      conversationId: cid,
      filename: 'a.png',
      size: 10,
      contentType: 'image/png',
    }),
    await who.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' }),
  ];
  for (const answer of refused) {
    const { retryAfterMs } = assertError(answer, 403, 'restricted');
    assert.equal(retryAfterMs !== undefined, ends, JSON.stringify(answer.body));
    if (ends) assert.ok(retryAfterMs! > 0 && retryAfterMs! <= 3_600_000, String(retryAfterMs));
  }
  const frame = await socket.refused(
    'message.send',
    { cid, text: 'x', clientMsgId: randomUUID() },
    'restricted',
  );
  assert.equal(frame.retryAfterMs !== undefined, ends);
  await socket.refused('message.update', { id: own, text: 'x', expectedVersion: 1 }, 'restricted');
  await socket.refused('reaction.set', { id: own, emoji: 'x', on: true }, 'restricted');
  assert.equal((await who.api('GET', `/v1/conversations/${cid}/messages`)).status, 200);
  assert.equal((await who.api('POST', `/v1/conversations/${cid}/read`, { seq: 1 })).status, 200);
  await socket.close();
}

test('restrictions#silence: a silenced member reads everything and writes nothing, and a repetition gets its original', async () => {
  const { owner, moderator, member, other, cid } = await group();
  const { id: own } = await scene.send(member, cid, { text: 'before', clientMsgId: 'before' });
  const call = await start(owner, cid);
  await act(member, call.id, 'join');
  const socket = await scene.online(member);
  const { lastSeq } = (await server('GET', `/v1/conversations/${cid}`)).body;
  const { status, body } = await restrict(moderator.api, cid, member, {
    kind: 'silence',
    until: soon(3_600_000),
    reason: 'calm down',
  });
  assert.equal(status, 200, JSON.stringify(body));
  const { at: _at, until: _until, ...rest } = body;
  assert.deepEqual(rest, { userId: member.id, kind: 'silence', reason: 'calm down', by: moderator.id });
  const told = await socket.ephemeral('personal');
  assert.deepEqual([told.d.kind, told.d.d], ['restriction', { conversationId: cid, ...body }]);
  assert.equal(stateOf((await server('GET', `/v1/calls/${call.id}`)).body, member), 'left');
  assertError(await act(member, call.id, 'join'), 403, 'restricted');

  await assertSilent(member, cid, own, true);
  const again = await say(member, cid, 'before');
  assert.deepEqual([again.status, again.body.id], [201, own]);
  // A batch finds for each its own answer.
  const many = await Promise.all([
    say(other, cid),
    say(member, cid),
    say(member, cid, 'before'),
    say(owner, cid),
  ]);
  assert.deepEqual(
    many.map((a) => a.status),
    [201, 403, 201, 201],
  );
  assert.equal(
    (await server('POST', `/v1/conversations/${cid}/messages`, { text: 'x', senderId: member.id })).status,
    201,
    'a server is not bound',
  );
  // Without an end, and through leaving and coming back.
  await restrict(owner.api, cid, member, { kind: 'silence' });
  await assertSilent(member, cid, own, false);
  await member.api('DELETE', `/v1/conversations/${cid}/members/${member.id}`);
  await owner.api('POST', `/v1/conversations/${cid}/members`, { userIds: [member.id] });
  assertError(await say(member, cid), 403, 'restricted');
  const types = (await scene.events(cid, lastSeq)).map((e) => e.type);
  assert.deepEqual(
    types.filter((t) => t !== 'message.new'),
    ['member.removed', 'member.added'],
    'a silence is not in the stream',
  );
  assert.equal((await lift(moderator.api, cid, member)).status, 204);
  assert.equal((await lift(moderator.api, cid, member)).status, 204);
  assert.equal((await say(member, cid)).status, 201);
});

test('restrictions#ban: the user leaves, users cannot bring it back until the end, and a server that adds it lifts the ban', async () => {
  const { owner, moderator, member, other, cid } = await group();
  const socket = await scene.online(other);
  const banned = await restrict(moderator.api, cid, member, { kind: 'ban', until: soon(3_600_000) });
  assert.equal(banned.status, 200);
  const { d } = await socket.event('member.removed', cid);
  assert.deepEqual(d, { userId: member.id, actorId: moderator.id, reason: 'removed', banned: true });
  assertError(await say(member, cid), 403, 'not_member');
  const add = (by: Api) => by('POST', `/v1/conversations/${cid}/members`, { userIds: [member.id] });
  const { retryAfterMs } = assertError(await add(owner.api), 403, 'restricted');
  assert.ok(retryAfterMs! > 0 && retryAfterMs! <= 3_600_000);
  const listed = (await moderator.api('GET', `/v1/conversations/${cid}/restrictions`)).body;
  assert.deepEqual(
    listed.data.map((r: any) => [r.userId, r.kind, r.by]),
    [[member.id, 'ban', moderator.id]],
  );
  // Who left before can be banned, too; without an end.
  await other.api('DELETE', `/v1/conversations/${cid}/members/${other.id}`);
  assert.equal((await restrict(owner.api, cid, other, { kind: 'ban' })).status, 200);
  const refused = await owner.api('POST', `/v1/conversations/${cid}/members`, { userIds: [other.id] });
  assert.equal(assertError(refused, 403, 'restricted').retryAfterMs, undefined);
  const first = (await owner.api('GET', `/v1/conversations/${cid}/restrictions?limit=1`)).body;
  assert.equal(first.data[0].userId, other.id, 'newest first');
  const rest = (await owner.api('GET', `/v1/conversations/${cid}/restrictions?cursor=${first.nextCursor}`))
    .body;
  assert.deepEqual(
    rest.data.map((r: any) => r.userId),
    [member.id],
  );
  assert.equal((await add(server)).status, 200);
  assert.equal((await say(member, cid)).status, 201);
  assert.equal((await lift(owner.api, cid, other)).status, 204);
  assert.equal(
    (await owner.api('POST', `/v1/conversations/${cid}/members`, { userIds: [other.id] })).status,
    200,
  );
});

test('restrictions#told: all devices of the user hear of it, nobody else, and a stranger not what was written about it', async () => {
  const { owner, member, other, cid } = await group();
  const [stranger, byServer] = [await scene.actor('stranger'), await scene.actor('by-server')];
  const people = [member, member, stranger, byServer, other];
  const sockets = await Promise.all(people.map((one) => scene.online(one)));
  const [phone, laptop, atStranger, atOther, watcher] = sockets as [any, any, any, any, any];
  const reason = 'words that hurt';
  const told = async (socket: any) => (await socket.ephemeral('personal')).d;

  const silenced = await server('PUT', `/v1/users/${member.id}/silence`, { reason });
  await server('DELETE', `/v1/users/${member.id}/silence`);
  const banned = await restrict(owner.api, cid, member, { kind: 'ban', reason });
  for (const socket of [phone, laptop]) {
    const [first, second, third] = [await told(socket), await told(socket), await told(socket)];
    assert.deepEqual([first.kind, first.d], ['restriction', { conversationId: null, ...silenced.body }]);
    assert.deepEqual(second.d, { conversationId: null, userId: member.id, kind: null, until: null });
    assert.deepEqual(third.d, { conversationId: cid, ...banned.body });
    assert.deepEqual([second.rev, third.rev], [first.rev + 1, first.rev + 2]);
  }
  // Anybody may have a group and ban strangers from it, also those who have blocked them.
  await stranger.api('PUT', `/v1/blocks/${owner.id}`, {});
  assert.equal((await told(atStranger)).kind, 'block');
  const far = await restrict(owner.api, cid, stranger, { kind: 'ban', reason });
  assert.equal(far.body.reason, reason);
  assert.deepEqual((await told(atStranger)).d, { conversationId: cid, ...far.body, reason: null });
  const trusted = await restrict(server, cid, byServer, { kind: 'ban', reason });
  assert.deepEqual((await told(atOther)).d, { conversationId: cid, ...trusted.body });
  // Nothing is lifted, so nobody is told.
  assert.equal((await lift(owner.api, cid, other)).status, 204);
  await watcher.barrier();
  assert.ok(watcher.frames.every((f: { t: string }) => f.t !== 'personal'));
});

test('restrictions#end: a silence and a ban end by themselves, on every path', async () => {
  const { owner, member, other, cid } = await group();
  const end = soon(1_500);
  await restrict(owner.api, cid, member, { kind: 'silence', until: end });
  await restrict(owner.api, cid, other, { kind: 'ban', until: end });
  const ofUser = await scene.actor();
  const { id: direct } = await scene.direct(ofUser, owner);
  await server('PUT', `/v1/users/${ofUser.id}/silence`, { until: end });
  const first = [await say(member, cid), await say(ofUser, direct)];
  for (const answer of first) if (answer.status !== 201) assertError(answer, 403, 'restricted');
  await until(async () => (await say(member, cid)).status === 201, 'the silence to end');
  await until(async () => (await say(ofUser, direct)).status === 201, 'the silence to end');
  await until(
    async () =>
      (await owner.api('POST', `/v1/conversations/${cid}/members`, { userIds: [other.id] })).status === 200,
    'the ban to end',
  );
  assert.ok(Date.now() >= Date.parse(end));
  assert.deepEqual((await owner.api('GET', `/v1/conversations/${cid}/restrictions`)).body.data, []);
});

test('restrictions#who: owners, moderators and servers, never against themselves or upwards', async () => {
  const { owner, moderator, member, other, cid } = await group();
  const silence = { kind: 'silence' };
  for (const kind of ['silence', 'ban']) {
    assertError(await restrict(moderator.api, cid, owner, { kind }), 403, 'forbidden');
    assertError(await restrict(member.api, cid, other, { kind }), 403, 'forbidden');
    assertError(await restrict(member.api, cid, owner, { kind }), 403, 'forbidden');
    assertError(await restrict(owner.api, cid, owner, { kind }), 400, 'invalid_request', 'userId');
  }
  // Who may restrict nobody does not learn who exists.
  const nobody = `/v1/conversations/${cid}/restrictions/nobody-at-all`;
  assertError(await member.api('PUT', nobody, silence), 403, 'forbidden');
  assertError(await member.api('DELETE', nobody), 403, 'forbidden');
  assertError(await owner.api('PUT', nobody, silence), 404, 'not_found');
  const second = await scene.actor('second');
  await server('POST', `/v1/conversations/${cid}/members`, { userIds: [second.id] });
  await server('PATCH', `/v1/conversations/${cid}/members/${second.id}`, { role: 'moderator' });
  assertError(await restrict(moderator.api, cid, second, silence), 403, 'forbidden');
  assert.equal((await restrict(owner.api, cid, second, silence)).status, 200);
  assertError(await lift(second.api, cid, second), 400, 'invalid_request', 'userId');
  assertError(await lift(moderator.api, cid, second), 403, 'forbidden');
  assertError(await member.api('GET', `/v1/conversations/${cid}/restrictions`), 403, 'forbidden');
  const stranger = await scene.actor();
  assertError(await restrict(stranger.api, cid, member, silence), 403, 'not_member');
  assertError(await stranger.api('GET', `/v1/conversations/${cid}/restrictions`), 403, 'not_member');
  assertError(await restrict(owner.api, cid, stranger, silence), 404, 'not_found');
  assertError(await restrict(owner.api, 'conv_none', member, silence), 404, 'not_found');
  assertError(await restrict(owner.api, cid, member, { kind: 'mute' }), 400, 'invalid_request', 'kind');
  for (const until of ['2026-99-01', '2099-02-31T00:00:00Z', '0000-01-01', '9999-12-31T23:59:59-23:59'])
    assertError(
      await restrict(owner.api, cid, member, { ...silence, until }),
      400,
      'invalid_request',
      'until',
    );
  const { id: direct } = await scene.direct(owner, member);
  assertError(await restrict(server, direct, member, silence), 400, 'invalid_request');
  assertError(await owner.api('PUT', `/v1/users/${member.id}/silence`, {}), 403, 'forbidden');
  assert.deepEqual(
    await sql(`SELECT 1 FROM restrictions r JOIN users u ON u.no = r.usr WHERE u.id = $1`, [member.id]),
    [],
  );
});

test('restrictions#environment: a silence in the environment holds everywhere; webhooks hear of all; erasure forgets', async () => {
  const receiver = await startReceiver();
  try {
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['member.restricted'] });
    const { owner, member, cid } = await group();
    const { id: own } = await scene.send(member, cid);
    const { body } = await server('PUT', `/v1/users/${member.id}/silence`, { reason: 'spam' });
    assert.partialDeepStrictEqual(body, { userId: member.id, kind: 'silence', until: null, by: null });
    await assertSilent(member, cid, own, false);
    // The silence of the group ends before that of the environment.
    await restrict(owner.api, cid, member, { kind: 'silence', until: soon(3_600_000) });
    assert.equal(assertError(await say(member, cid), 403, 'restricted').retryAfterMs, undefined);
    assert.equal((await server('DELETE', `/v1/users/${member.id}/silence`)).status, 204);
    assert.equal((await server('DELETE', `/v1/users/${member.id}/silence`)).status, 204);
    await assertSilent(member, cid, own, true);
    const told = (conversationId: string | null, kind: string | null) => {
      const wanted = JSON.stringify([member.id, conversationId, kind]);
      const is = ({ data: d }: Received) => JSON.stringify([d.userId, d.conversationId, d.kind]) === wanted;
      return receiver.next('member.restricted', is);
    };
    assert.equal((await told(null, 'silence')).data.by, null);
    assert.equal((await told(cid, 'silence')).data.by, owner.id);
    assert.deepEqual((await told(null, null)).data, {
      conversationId: null,
      userId: member.id,
      kind: null,
      until: null,
      by: null,
    });
    const [{ no }] = (await sql('SELECT no FROM users WHERE id = $1', [member.id])) as [{ no: number }];
    assert.equal((await server('DELETE', `/v1/users/${member.id}`)).status, 204);
    assert.deepEqual(await sql('SELECT 1 FROM restrictions WHERE usr = $1', [no]), []);
  } finally {
    await receiver.close();
  }
});

test('users#deactivate-until: a deactivation with an end is over by then, for new tokens', async () => {
  const user = await scene.actor();
  const end = soon(1_500);
  const { status, body } = await server('POST', `/v1/users/${user.id}/deactivate`, { until: end });
  assert.equal(status, 200);
  assert.ok(body.deactivatedAt);
  const tokenOf = async () => await server('POST', '/v1/tokens', { userId: user.id });
  const refused = await tokenOf();
  if (refused.status !== 201) assertError(refused, 403, 'user_deactivated');
  await until(async () => (await tokenOf()).status === 201, 'the deactivation to end');
  assert.ok(Date.now() >= Date.parse(end));
  const api = createApi(service.url, (await tokenOf()).body.token);
  assert.equal((await api('GET', '/v1/conversations')).status, 200);
  assert.equal((await server('GET', `/v1/users/${user.id}`)).body.deactivatedAt, null);
  assertError(
    await server('POST', `/v1/users/${user.id}/deactivate`, { until: 'never' }),
    400,
    'invalid_request',
    'until',
  );
});
