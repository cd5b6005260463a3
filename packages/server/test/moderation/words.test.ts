import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { limits } from '@parley/protocol';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { createScene } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';

/** words.md and conversations#slow-mode, over REST and the socket. In an environment of its own: others send words, too. */

const { service, sql } = useService();
let scene: ReturnType<typeof createScene>;
setUp(() => {
  scene = createScene(service.url, 'other');
});

const list = (name: string) => `/v1/moderation/lists/${name}`;
const put = (name: string, entries: string[], fields: object = {}) =>
  scene.server('PUT', list(name), { entries, action: 'reject', conversations: 'all', ...fields });
const say = (by: Actor, cid: string, text: string, clientMsgId: string = randomUUID()) =>
  by.api('POST', `/v1/conversations/${cid}/messages`, { text, clientMsgId });

test('words#send: what is sent and edited is refused or masked, over REST and socket, and servers are not bound', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const [{ id: cid }, { id: direct }] = await Promise.all([
    scene.group(anna, [ben]),
    scene.direct(anna, ben),
  ]);
  const socket = await scene.online(ben);
  const before = await say(ben, cid, 'a frightful word', 'early');
  assert.equal(before.status, 201);
  const made = await put('harsh', ['frightful', 'awful*', 'two words']);
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.deepEqual((await scene.server('GET', list('harsh'))).body, made.body);
  await put('mild', ['drat'], { action: 'mask', conversations: 'group' });

  const refused = await say(ben, cid, 'How FRIGHTFUL!');
  assertError(refused, 403, 'message_rejected');
  const elsewhere = createScene(service.url, 'dev');
  const dora = await elsewhere.actor();
  const { id: theirs } = await elsewhere.group(dora, []);
  assert.equal((await say(dora, theirs, 'frightful')).status, 201, 'lists are of one environment');
  assert.match(refused.body.error.message, /words/);
  for (const text of ['awfully', 'two, words'])
    assertError(await say(ben, direct, text), 403, 'message_rejected');
  // A socket that was open before hears of it within a second.
  await until(async () => {
    const answer = await socket.ask('message.send', { cid, text: 'frightful', clientMsgId: randomUUID() });
    return answer.t === 'error' && answer.code === 'message_rejected';
  }, 'the old socket is refused');
  const { lastSeq } = (await scene.server('GET', `/v1/conversations/${cid}`)).body;
  const again = await say(ben, cid, 'a frightful word', 'early');
  assert.deepEqual([again.status, again.body.id], [201, before.body.id], 'a repetition gets its original');

  const receiver = await startReceiver();
  try {
    await scene.server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.created'] });
    const mild = await say(ben, cid, 'Oh Drat, it rains');
    assert.equal(mild.body.text, 'Oh ****, it rains');
    const event = await socket.next(
      (f) => f.t === 'event' && f.e === 'message.new' && f.d.message.id === mild.body.id,
      'the message',
    );
    assert.equal(event.d.message.text, 'Oh ****, it rains');
    const hook = await receiver.next('message.created', (r) => r.data.message.id === mild.body.id);
    assert.equal(hook.data.message.text, 'Oh ****, it rains');
    assert.equal((await scene.item(anna, cid)).lastMessage.text, 'Oh ****, it rains');
    assert.equal((await say(ben, direct, 'drat')).body.text, 'drat', 'only in groups');

    const edit = (text: string, expectedVersion: number): Promise<Answer> =>
      ben.api('PATCH', `/v1/messages/${mild.body.id}`, { text, expectedVersion });
    assertError(await edit('it is frightful', 1), 403, 'message_rejected');
    assert.equal((await edit('still drat', 1)).body.text, 'still ****');
    await socket.refused(
      'message.update',
      { id: mild.body.id, text: 'awful', expectedVersion: 2 },
      'message_rejected',
    );
  } finally {
    await receiver.close();
  }
  const byServer = { text: 'frightful drat', senderId: ben.id };
  const sent = await scene.server('POST', `/v1/conversations/${cid}/messages`, byServer);
  assert.equal(sent.body.text, 'frightful drat');
  const kept = (await scene.events(cid, lastSeq)).filter((e) => e.type === 'message.new');
  assert.equal(kept.filter((e) => /frightful/.test(e.message.text)).length, 1);

  assert.equal((await scene.server('DELETE', list('harsh'))).status, 204);
  assert.equal((await scene.server('DELETE', list('harsh'))).status, 204);
  assert.equal((await say(ben, cid, 'frightful')).status, 201);
  await scene.server('DELETE', list('mild'));
});

test('words#send: what a poll asks is compared, too, and mentions stay where they stand in a masked text', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  await put('poll-harsh', ['frightful']);
  await put('poll-mild', ['drat'], { action: 'mask' });
  const send = (fields: object, clientMsgId: string = randomUUID()) =>
    anna.api('POST', `/v1/conversations/${cid}/messages`, { clientMsgId, ...fields });
  const poll = (question: string, second: string) => ({
    poll: { question, options: [{ text: 'fine' }, { text: second }] },
  });
  for (const bad of [poll('How frightful?', 'b'), poll('How?', 'FRIGHTFUL')])
    assertError(await send(bad), 403, 'message_rejected');
  const asked = await send(poll('Drat?', 'oh drat'), 'poll');
  assert.equal(asked.body.poll.question, '****?');
  assert.equal(asked.body.poll.options[1].text, 'oh ****');
  assert.equal(asked.body.text, null);
  await put('poll-mild', ['drat'], { action: 'reject' });
  const again = await send(poll('Drat?', 'oh drat'), 'poll');
  assert.deepEqual([again.status, again.body.id], [201, asked.body.id], 'a repetition gets its original');
  await put('poll-mild', ['drat'], { action: 'mask' });

  // Letters of two UTF-16 units, and one that shows nothing.
  const text = '𝐝𝐫𝐚𝐭 dr\u200bat @ben';
  const offset = text.indexOf('@');
  const mentions = [{ type: 'user', userId: ben.id, offset, length: 4 }];
  const sent = await send({ text, mentions });
  assert.equal(sent.status, 201, JSON.stringify(sent.body));
  const stored = (await ben.api('GET', `/v1/messages/${sent.body.id}`)).body;
  assert.deepEqual([stored.text, stored.mentions], [`${'*'.repeat(8)} ${'*'.repeat(5)} @ben`, mentions]);
  const edited = await anna.api('PATCH', `/v1/messages/${sent.body.id}`, {
    text: `drat ${text}`,
    mentions: [{ ...mentions[0], offset: offset + 5 }],
    expectedVersion: 1,
  });
  const [range] = edited.body.mentions;
  assert.equal(edited.body.text.slice(range.offset, range.offset + range.length), '@ben');
  // Nothing to compare.
  assert.equal((await send({ text: null, metadata: { a: 1 } })).status, 201);
  for (const name of ['poll-harsh', 'poll-mild']) await scene.server('DELETE', list(name));
});

test('words#send, messages#dedup: a repetition that may be none when it is appended is compared', async () => {
  const anna = await scene.actor('anna');
  const { id: cid } = await scene.group(anna, []);
  const clientMsgId = `old-${randomUUID()}`;
  assert.equal((await say(anna, cid, 'harmless', clientMsgId)).status, 201);
  await put('late', ['frightful']);
  const age = "UPDATE sent_ids SET created_at = created_at - interval '47:59:30' WHERE client_msg_id = $1";
  await sql(age, [clientMsgId]);
  assertError(await say(anna, cid, 'frightful', clientMsgId), 403, 'message_rejected');
  await scene.server('DELETE', list('late'));
});

test('words#limits: lists and entries are bounded, bad entries are named, and clients see nothing of it', async () => {
  assertError(await put('x', ['a*b*c']), 400, 'invalid_request', 'entries');
  assertError(await put('x', ['!!']), 400, 'invalid_request', 'entries');
  // Each of these signs stands for fifteen letters, and an automaton has room for every letter.
  assertError(await put('x', [`*${'ﷺ'.repeat(62)}*`]), 400, 'invalid_request', 'entries');
  assertError(await put('x', ['x'.repeat(65)]), 400, 'invalid_request');
  assertError(await put('Not a name', ['a']), 400, 'invalid_request', 'name');
  assertError(await put('x', ['a'], { action: 'other' }), 400, 'invalid_request', 'action');
  assertError(await scene.server('GET', list('none')), 404, 'not_found');
  const anna = await scene.actor();
  for (const method of ['GET', 'DELETE']) assertError(await anna.api(method, list('x')), 403, 'forbidden');

  const words = Array.from({ length: 2_500 }, (_, i) => `w${i}`);
  for (const name of ['big-a', 'big-b']) assert.equal((await put(name, words)).status, 200);
  assertError(await put('one-more', ['x']), 409, 'limit_reached', 'entries');
  assert.equal((await put('big-b', ['x'])).status, 200, 'a list that is replaced makes room');
  const names = Array.from({ length: limits.wordLists - 1 }, (_, i) => `list-${i}`);
  const made = await Promise.all(names.map((name) => put(name, ['a'])));
  assert.deepEqual(made.map((a) => a.status).sort(), [...Array<number>(8).fill(200), 409]);
  assertError(
    made.find((a) => a.status === 409)!,
    409,
    'limit_reached',
    'name',
  );
  const seen: string[] = [];
  for (let cursor = ''; ;) {
    const { body } = await scene.server('GET', `/v1/moderation/lists?limit=4${cursor}`);
    seen.push(...body.data.map((l: any) => `${l.name} ${l.entries}`));
    if (body.nextCursor === null) break;
    cursor = `&cursor=${body.nextCursor}`;
  }
  assert.equal(seen.length, limits.wordLists);
  assert.deepEqual(seen.slice(0, 2), ['big-a 2500', 'big-b 1']);
  for (const name of ['big-a', 'big-b', ...names]) await scene.server('DELETE', list(name));
});

test('conversations#slow-mode: of many messages at once one is stored, and the others are told the exact rest', async () => {
  const [owner, moderator, member] = (await Promise.all(
    ['owner', 'moderator', 'member'].map((name) => scene.actor(name)),
  )) as [Actor, Actor, Actor];
  const { id: cid } = await scene.group(owner, [moderator, member]);
  await scene.server('PATCH', `/v1/conversations/${cid}/members/${moderator.id}`, { role: 'moderator' });
  const rule = (by: Actor, slowModeSeconds: unknown, id = cid) =>
    by.api('PATCH', `/v1/conversations/${id}`, { rules: { slowModeSeconds } });
  assertError(await rule(moderator, 60), 403, 'forbidden');
  for (const bad of [-1, 21_601, 1.5, 'x']) assertError(await rule(owner, bad), 400, 'invalid_request');
  const socket = await scene.online(member);
  const set = await rule(owner, 3_600);
  assert.deepEqual(set.body.rules, { slowModeSeconds: 3_600 });
  const { d } = await socket.event('conversation.updated', cid);
  assert.deepEqual(d.changes, { rules: { slowModeSeconds: 3_600 } });
  assert.deepEqual((await scene.item(member, cid)).rules, { slowModeSeconds: 3_600 });

  const ids = Array.from({ length: 10 }, () => randomUUID());
  const answers = await Promise.all([
    ...ids.slice(0, 5).map((id) => say(member, cid, 'now', id)),
    ...ids.slice(5).map(async (clientMsgId) => {
      const answer = await socket.ask('message.send', { cid, text: 'now', clientMsgId });
      const { code, retryAfterMs } = answer;
      return { status: answer.t === 'ack' ? 201 : 429, body: { error: { code, retryAfterMs } } };
    }),
  ]);
  assert.equal(answers.filter((a) => a.status === 201).length, 1);
  for (const { status, body } of answers.filter((a) => a.status !== 201)) {
    assert.deepEqual([status, body.error.code], [429, 'rate_limited']);
    const { retryAfterMs } = body.error;
    assert.ok(retryAfterMs > 3_000_000 && retryAfterMs <= 3_600_000, String(retryAfterMs));
  }
  const first = ids[answers.findIndex((a) => a.status === 201)]!;
  assert.equal((await say(member, cid, 'now', first)).status, 201, 'a repetition is no send');
  const texts = async () =>
    (await scene.server('GET', `/v1/conversations/${cid}/messages`)).body.data.length as number;
  assert.equal(await texts(), 1);
  for (const who of [owner, moderator])
    for (let i = 0; i < 2; i++) assert.equal((await say(who, cid, 'exempt')).status, 201);
  const forMember = { text: 'x', senderId: member.id };
  assert.equal((await scene.server('POST', `/v1/conversations/${cid}/messages`, forMember)).status, 201);
  // A second member's message does not wait for the first one's.
  const late = await scene.actor();
  await scene.server('POST', `/v1/conversations/${cid}/members`, { userIds: [late.id] });
  assert.deepEqual(
    (await Promise.all([say(late, cid, 'a'), say(late, cid, 'b'), say(owner, cid, 'c')]))
      .map((a) => a.status)
      .sort(),
    [201, 201, 429],
  );

  // A short one ends by itself, and 0 takes it away.
  assert.equal((await rule(owner, 1)).status, 200);
  for (let answer = await say(member, cid, 'later'); answer.status !== 201;) {
    await delay(assertError(answer, 429, 'rate_limited').retryAfterMs);
    answer = await say(member, cid, 'later');
  }
  const off = await rule(owner, 0);
  assert.equal('rules' in off.body, false);
  for (let i = 0; i < 3; i++) assert.equal((await say(member, cid, 'free')).status, 201);
  const { id: direct } = await scene.direct(owner, member);
  const refused = await scene.server('PATCH', `/v1/conversations/${direct}`, {
    rules: { slowModeSeconds: 5 },
  });
  assertError(refused, 400, 'invalid_request');
});
