import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fill } from '../history/world.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';

/** pins.md, over REST, socket and webhooks. */

const { scene, server, db, sql } = useService();

const path = (id: string) => `/v1/messages/${id}/pin`;
const ok = async (answer: Promise<Answer>, status = 200) => {
  const { status: got, body } = await answer;
  assert.equal(got, status, JSON.stringify(body));
  return body;
};
const pin = (who: Actor, id: string) => ok(who.api('PUT', path(id)));
const unpin = (who: Actor, id: string) => ok(who.api('DELETE', path(id)), 204);
const pins = async (who: Actor, cid: string): Promise<any[]> =>
  (await ok(who.api('GET', `/v1/conversations/${cid}/pins`))).data;
const told = async (cid: string, after = 0) =>
  (await scene.events(cid, after)).filter((e: { type: string }) => e.type === 'message.pinned');
const rowsOf = (cid: string) =>
  sql('SELECT p.* FROM pins p JOIN conversations c ON c.env = p.env AND c.no = p.conv WHERE c.id = $1', [
    cid,
  ]);

async function talk(messages = 1) {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const sent: { id: string; seq: number }[] = [];
  for (let i = 0; i < messages; i++) sent.push(await scene.send(anna, cid, { text: `m${i}` }));
  return { anna, ben, cid, sent, id: sent[0]?.id ?? '' };
}
/** What was refused because others were faster is asked again, as an SDK does. */
async function patient(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503 && answer.status !== 429) return answer;
    await delay(answer.body.error.retryAfterMs ?? 100);
  }
}

test('pins#set, pins#message, pins#list: history, the message and the list show who pinned it and when; a repetition changes nothing', async () => {
  const { anna, ben, cid, sent } = await talk(3);
  const [first, second, third] = sent as [any, any, any];
  assert.deepEqual(await pins(ben, cid), []);
  const before = await scene.item(ben, cid);
  const pinned = await pin(ben, second.id);
  assert.equal(pinned.messageId, second.id);
  assert.equal(pinned.pinnedBy, ben.id);
  assert.deepEqual(await pin(anna, second.id), pinned, 'still the first pin');
  assert.deepEqual(await ok(server('PUT', path(second.id))), pinned);
  const byServer = await ok(server('PUT', path(first.id)));
  assert.equal(byServer.pinnedBy, null);
  await pin(anna, third.id);

  const history = (await ok(ben.api('GET', `/v1/conversations/${cid}/messages`))).data;
  assert.deepEqual(
    history.map((m: any) => [m.id, m.pinnedBy, typeof m.pinnedAt]),
    [
      [third.id, anna.id, 'string'],
      [second.id, ben.id, 'string'],
      [first.id, null, 'string'],
    ],
  );
  const one = await ok(ben.api('GET', `/v1/messages/${second.id}`));
  assert.deepEqual([one.pinnedAt, one.pinnedBy], [pinned.pinnedAt, pinned.pinnedBy]);
  // The newest pin first; of two in one millisecond the newer message.
  const expected = history.toSorted(
    (a: any, b: any) => b.pinnedAt.localeCompare(a.pinnedAt) || b.seq - a.seq,
  );
  assert.deepEqual(await pins(ben, cid), expected);
  assert.deepEqual((await ok(server('GET', `/v1/conversations/${cid}/pins`))).data, expected);

  await unpin(anna, second.id);
  await unpin(anna, second.id);
  assert.ok(!('pinnedAt' in (await ok(ben.api('GET', `/v1/messages/${second.id}`)))));
  assert.deepEqual(new Set((await pins(ben, cid)).map((m) => m.id)), new Set([first.id, third.id]));
  const events = await told(cid);
  assert.deepEqual(
    events.map((e: any) => [e.id, e.pinned, e.actorId]),
    [
      [second.id, true, ben.id],
      [first.id, true, null],
      [third.id, true, anna.id],
      [second.id, false, anna.id],
    ],
  );
  assert.equal(events[0].at, pinned.pinnedAt);
  // pins#quiet
  const after = await scene.item(ben, cid);
  for (const field of ['unreadCount', 'lastReadSeq', 'lastMessage', 'lastMessageAt'])
    assert.deepEqual(after[field], before[field], field);
  assert.equal(after.lastSeq, before.lastSeq + 4);
  assert.ok((await scene.events(cid)).every((e: any) => !e.message || !('pinnedAt' in e.message)));
});

test('pins#limit, T4.1: of 101 concurrent pins exactly 100 are there, and two who unpin make one event', async () => {
  const { anna, ben, cid } = await talk(0);
  await fill(db, cid, 101);
  const { data } = (await server('GET', `/v1/conversations/${cid}/messages?limit=200`)).body;
  assert.equal(data.length, 101);
  const answers = await Promise.all(
    data.map(({ id }: any, i: number) => patient(() => (i % 10 === 0 ? anna.api : server)('PUT', path(id)))),
  );
  const refused = answers.filter((a) => a.status !== 200);
  assert.equal(refused.length, 1);
  assertError(refused[0]!, 409, 'limit_reached', 'pins');
  assert.deepEqual(refused[0]!.body.error.details, { limit: 100 });
  assert.equal((await rowsOf(cid)).length, 100);
  const listed = await pins(anna, cid);
  assert.equal(listed.length, 100);
  const [gone] = listed;
  const { lastSeq } = await scene.item(anna, cid);
  const both = await Promise.all([anna, ben].map(({ api }) => patient(() => api('DELETE', path(gone.id)))));
  assert.deepEqual(
    both.map((a) => a.status),
    [204, 204],
  );
  assert.equal((await told(cid, lastSeq)).filter((e: any) => !e.pinned).length, 1);
  // There is room again.
  const left = data.find((m: any) => answers[data.indexOf(m)]!.status !== 200);
  await pin(ben, left.id);
  assert.equal((await rowsOf(cid)).length, 100);
});

test('pins#deleted, T4.2: a deleted message is unpinned without an event, and shows no trace', async () => {
  const { anna, ben, cid, sent } = await talk(3);
  for (const { id } of sent) await pin(ben, id);
  const [soft, hard, stays] = sent as [any, any, any];
  const events = (await told(cid)).length;
  await ok(anna.api('DELETE', `/v1/messages/${soft.id}`));
  await ok(server('DELETE', `/v1/messages/${hard.id}?hard=true`), 204);
  assert.deepEqual(
    (await pins(ben, cid)).map((m) => m.id),
    [stays.id],
  );
  assert.deepEqual(
    (await rowsOf(cid)).map((p) => Number(p['message'])),
    [stays.seq],
  );
  const history = (await ok(ben.api('GET', `/v1/conversations/${cid}/messages`))).data;
  assert.deepEqual(
    history.map((m: any) => [m.id, m.pinnedBy]),
    [
      [stays.id, ben.id],
      [soft.id, undefined],
    ],
  );
  assert.equal((await told(cid)).length, events);
  for (const { id } of [soft, hard])
    for (const method of ['PUT', 'DELETE']) assertError(await ben.api(method, path(id)), 404, 'not_found');
});

test('pins#event: members hear of it on all devices, and webhooks', async () => {
  const { anna, ben, cid, id } = await talk();
  const receiver = await startReceiver();
  try {
    await ok(server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.pinned'] }), 201);
    const [watcher, own] = await Promise.all([scene.online(anna), scene.online(ben)]);
    const { pinnedAt } = await pin(ben, id);
    const d = { id, pinned: true, actorId: ben.id, at: pinnedAt };
    const frame = await watcher.event('message.pinned', cid);
    assert.deepEqual(frame.d, d);
    assert.deepEqual((await own.event('message.pinned', cid)).d, d);
    const { data } = await receiver.next('message.pinned', (r) => r.data.conversationId === cid);
    assert.deepEqual(data, {
      conversationId: cid,
      seq: frame.seq,
      messageId: id,
      pinned: true,
      actorId: ben.id,
    });
  } finally {
    await receiver.close();
  }
});

test('pins#erasure: the pin stays under the replacement of who pinned it', async () => {
  for (const mode of ['anonymize', 'delete']) {
    const { anna, ben, cid, id } = await talk();
    await pin(ben, id);
    await ok(server('DELETE', `/v1/users/${ben.id}?messages=${mode}`), 204);
    const [message] = await pins(anna, cid);
    assert.equal(message.id, id);
    assert.match(message.pinnedBy, /^deleted:/);
    assert.ok(!JSON.stringify(await scene.events(cid)).includes(ben.id));
  }
});

test('pins#set: strangers and unknown messages are refused, and nothing is written', async () => {
  const { anna, cid, id } = await talk();
  const stranger = await scene.actor();
  for (const method of ['PUT', 'DELETE']) {
    assertError(await stranger.api(method, path(id)), 403, 'not_member');
    assertError(await anna.api(method, path('msg_none')), 404, 'not_found');
  }
  assertError(await stranger.api('GET', `/v1/conversations/${cid}/pins`), 403, 'not_member');
  assertError(await anna.api('GET', '/v1/conversations/conv_none/pins'), 404, 'not_found');
  await unpin(anna, id);
  const [conv] = await sql('SELECT flags, last_seq FROM conversations WHERE id = $1', [cid]);
  assert.equal(conv!['flags'], 0, 'unpinning what is not pinned writes nothing');
  assert.deepEqual(await rowsOf(cid), []);
  assert.deepEqual(await told(cid), []);
});
