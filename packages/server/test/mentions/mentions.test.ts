import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

/** mentions.md, over REST and the socket. */

const { scene, server, sql } = useService();

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
async function talk(members = 3) {
  const people = await Promise.all(range(members).map((i) => scene.actor(`p${i}`)));
  const { id: cid } = await scene.group(people[0]!, people.slice(1));
  return { people: people as [Actor, Actor, Actor, ...Actor[]], cid };
}
const ok = async (answer: Promise<{ status: number; body: any }>, status = 200) => {
  const got = await answer;
  assert.equal(got.status, status, JSON.stringify(got.body));
  return got.body;
};
const to = (user: { id: string }, ...at: [] | [offset: number, length: number]) => ({
  type: 'user',
  userId: user.id,
  ...(at.length === 0 ? {} : { offset: at[0], length: at[1] }),
});
let sent = 0;
const trySend = (who: Actor, cid: string, fields: object) =>
  who.api('POST', `/v1/conversations/${cid}/messages`, { clientMsgId: `m${++sent}`, ...fields });
const edit = (who: Actor, id: string, fields: object) => who.api('PATCH', `/v1/messages/${id}`, fields);
const unread = async (who: Actor, cid: string): Promise<number> =>
  (await scene.item(who, cid)).mentionUnreadCount ?? 0;
const inbox = async (who: Actor, query = ''): Promise<{ data: any[]; nextCursor: string | null }> =>
  ok(who.api('GET', `/v1/mentions${query}`));
const rowsOf = (cid: string) =>
  sql(
    `SELECT u.id, m.usr, m.seq FROM mentions m JOIN conversations c ON c.env = m.env AND c.no = m.conv
     LEFT JOIN users u ON u.no = m.usr WHERE c.id = $1 ORDER BY m.seq, m.usr`,
    [cid],
  );

test('mentions#field: a name in the text mentions nobody; the list does, whatever the text says (T3.1)', async () => {
  const { people, cid } = await talk();
  const [anna, ben, cleo] = people;
  const socket = await scene.online(ben);
  await scene.send(anna, cid, { text: `@${ben.id} hello` });
  assert.equal(await unread(ben, cid), 0);
  assert.ok(!('mentionUnreadCount' in (await scene.item(ben, cid))), 'absent when 0');
  const message = await scene.send(anna, cid, { text: 'lunch?', mentions: [to(ben)] });
  assert.deepEqual(message.mentions, [to(ben)]);
  assert.deepEqual([await unread(ben, cid), await unread(cleo, cid), await unread(anna, cid)], [1, 0, 0]);
  const live = await socket.next((f) => f.e === 'message.new' && f.d.message.id === message.id);
  assert.deepEqual(live.d.message.mentions, [to(ben)]);
  const history = await ok(cleo.api('GET', `/v1/conversations/${cid}/messages`));
  assert.deepEqual(history.data[0].mentions, [to(ben)]);
  assert.ok(!('mentions' in history.data[1]), 'absent where there are none');
  assert.deepEqual((await ok(cleo.api('GET', `/v1/messages/${message.id}`))).mentions, [to(ben)]);
  const events = await ok(cleo.api('GET', `/v1/conversations/${cid}/events?after=${message.seq - 1}`));
  assert.deepEqual(events.data[0].message.mentions, [to(ben)]);
  const sync = await ok(ben.api('POST', '/v1/sync', { cursor: null }));
  assert.equal(sync.conversations.find((c: any) => c.id === cid).mentionUnreadCount, 1);
  const read = await ok(ben.api('POST', `/v1/conversations/${cid}/read`, { seq: message.seq - 1 }));
  assert.equal(read.mentionUnreadCount, 1);
  const ack = await socket.request('read', { cid, seq: message.seq });
  assert.deepEqual(ack, { cid, lastReadSeq: message.seq, mentionUnreadCount: 0 });
  const byFrame = await socket.request('message.send', {
    cid,
    clientMsgId: 'frame',
    text: 'yes',
    mentions: [to(anna, 0, 3)],
  });
  assert.deepEqual((await ok(anna.api('GET', `/v1/messages/${byFrame.id}`))).mentions, [to(anna, 0, 3)]);
  assert.equal(await unread(anna, cid), 1);
});

test('mentions#ranges: UTF-16 offsets; a range outside, overlapping or inside a pair is refused and writes nothing (T3.3)', async () => {
  const { people, cid } = await talk(4);
  const [anna, ben, cleo, dora] = people as [Actor, Actor, Actor, Actor];
  const text = '👋 @ben @cleo';
  const mentions = [to(dora), to(ben, 3, 4), to(cleo, 8, 5)];
  const message = await ok(trySend(anna, cid, { text, mentions }), 201);
  assert.deepEqual(message.mentions, mentions);
  assert.deepEqual(
    mentions.slice(1).map(({ offset, length }) => text.slice(offset, offset! + length!)),
    ['@ben', '@cleo'],
  );
  const before = (await rowsOf(cid)).length;
  const bad: [what: string, mentions: object[], param: string][] = [
    ['overlapping', [to(ben, 3, 5), to(cleo, 7, 3)], 'mentions[1].offset'],
    ['descending', [to(cleo, 8, 5), to(ben, 3, 4)], 'mentions[1].offset'],
    ['outside', [to(ben, 9, 5)], 'mentions[0]'],
    ['beginning inside a pair', [to(ben, 1, 2)], 'mentions[0]'],
    ['ending inside a pair', [to(ben, 0, 1)], 'mentions[0]'],
    ['offset alone', [{ ...to(ben), offset: 1 }], 'mentions[0].length'],
    ['length alone', [{ ...to(ben), length: 1 }], 'mentions[0].offset'],
    ['empty', [to(ben, 0, 0)], 'mentions[0].length'],
    ['negative', [to(ben, -1, 2)], 'mentions[0].offset'],
    ['a user twice', [to(ben), to(ben, 3, 4)], 'mentions[1]'],
    ['nobody', [{ type: 'user' }], 'mentions[0].userId'],
    ['a user who does not exist', [to({ id: 'nobody-here' })], 'mentions[0].userId'],
    ['everyone with a user', [{ type: 'everyone', userId: ben.id }], 'mentions[0].userId'],
    ['everyone and here', [{ type: 'everyone' }, { type: 'here' }], 'mentions[1]'],
    ['another type', [{ type: 'team' }], 'mentions[0].type'],
    ['too many', range(limits.mentionsPerMessage + 1).map((i) => to({ id: `u${i}` })), 'mentions'],
  ];
  for (const [what, list, param] of bad)
    for (const answer of [
      await trySend(anna, cid, { text, mentions: list }),
      await edit(anna, message.id, { expectedVersion: 1, mentions: list }),
    ]) {
      assertError(answer, 400, 'invalid_request');
      assert.equal(answer.body.error.param, param, what);
    }
  assertError(
    await trySend(anna, cid, { metadata: { a: 1 }, mentions: [to(ben, 0, 1)] }),
    400,
    'invalid_request',
  );
  assert.equal((await rowsOf(cid)).length, before, 'nothing was written');
  assert.equal((await ok(anna.api('GET', `/v1/messages/${message.id}`))).version, 1);
  const many = await Promise.all(range(limits.mentionsPerMessage).map((i) => scene.actor(`many${i}`)));
  const all = await ok(trySend(anna, cid, { text, mentions: many.map((u) => to(u)) }), 201);
  assert.equal(all.mentions.length, limits.mentionsPerMessage, '50 are accepted');
});

test('mentions#all: everyone and here by owners, moderators and servers, in groups, one row each (T3.4)', async () => {
  const { people, cid } = await talk(4);
  const [owner, ben, cleo] = people;
  for (const type of ['everyone', 'here']) {
    const refused = await trySend(ben, cid, { text: 'all', mentions: [{ type }] });
    assertError(refused, 403, 'forbidden');
    assert.equal(refused.body.error.param, 'mentions');
  }
  const first = await ok(trySend(owner, cid, { text: 'all', mentions: [{ type: 'everyone' }] }), 201);
  const both = await ok(
    trySend(owner, cid, { text: 'all', mentions: [to(ben), { type: 'here', offset: 0, length: 3 }] }),
    201,
  );
  await ok(
    server('POST', `/v1/conversations/${cid}/messages`, {
      text: 'system',
      mentions: [{ type: 'everyone' }],
    }),
    201,
  );
  assert.deepEqual(
    (await rowsOf(cid)).map((r) => [r['seq'], r['id']]),
    [
      [first.seq, null],
      [both.seq, null],
      [both.seq, ben.id],
      [both.seq + 1, null],
    ],
  );
  assert.deepEqual(
    await Promise.all([owner, ben, cleo].map((who) => unread(who, cid))),
    [1, 3, 3],
    'one that names a member and everyone counts once; one’s own count not',
  );
  const { id: dm } = await scene.direct(owner, ben);
  assertError(
    await trySend(owner, dm, { text: 'all', mentions: [{ type: 'everyone' }] }),
    400,
    'invalid_request',
  );
  // A repeat is answered, whatever changed since.
  const again = { clientMsgId: 'repeated', text: 'all', mentions: [{ type: 'everyone' }] };
  const original = await ok(owner.api('POST', `/v1/conversations/${cid}/messages`, again), 201);
  await ok(server('PATCH', `/v1/conversations/${cid}/members/${owner.id}`, { role: 'member' }));
  assert.deepEqual(await ok(owner.api('POST', `/v1/conversations/${cid}/messages`, again), 201), original);
  assertError(await edit(ben, both.id, { expectedVersion: 1, text: 'x' }), 403, 'forbidden');
  const kept = { expectedVersion: 1, text: 'others', mentions: [{ type: 'here' }] };
  assert.deepEqual(
    (await ok(edit(owner, both.id, kept))).mentions,
    [{ type: 'here' }],
    'it was there before',
  );
});

test('mentions#edit: an edit replaces the list; a changed text alone keeps who, not where', async () => {
  const { people, cid } = await talk(4);
  const [anna, ben, cleo, dora] = people as [Actor, Actor, Actor, Actor];
  const { id, seq } = await ok(trySend(anna, cid, { text: '@ben hi', mentions: [to(ben, 0, 4)] }), 201);
  const shown = async () => (await ok(cleo.api('GET', `/v1/messages/${id}`))).mentions;
  await ok(edit(anna, id, { expectedVersion: 1, metadata: { a: 1 } }));
  assert.deepEqual(await shown(), [to(ben, 0, 4)]);
  const moved = await ok(edit(anna, id, { expectedVersion: 2, text: 'hi @ben' }));
  assert.deepEqual([moved.mentions, await shown()], [[to(ben)], [to(ben)]]);
  assert.equal(await unread(ben, cid), 1);
  await ok(dora.api('POST', `/v1/conversations/${cid}/read`, { seq }));
  const named = await ok(edit(anna, id, { expectedVersion: 3, mentions: [to(cleo), to(dora)] }));
  assert.deepEqual([named.mentions, named.text], [[to(cleo), to(dora)], 'hi @ben']);
  assert.deepEqual(
    await Promise.all([ben, cleo, dora].map((who) => unread(who, cid))),
    [0, 1, 0],
    'counted if it is above the read mark',
  );
  const none = await ok(edit(anna, id, { expectedVersion: 4, mentions: [] }));
  assert.ok(!('mentions' in none));
  assert.deepEqual([await unread(cleo, cid), await rowsOf(cid)], [0, []]);
  assertError(await edit(anna, id, { expectedVersion: 5 }), 400, 'invalid_request');
});

test('mentions#strangers: who is no member is kept in the list, without effect, also after joining', async () => {
  const { people, cid } = await talk();
  const [anna, ben] = people;
  const stranger = await scene.actor('stranger');
  const { id } = await ok(trySend(anna, cid, { text: 'hi', mentions: [to(stranger), to(ben)] }), 201);
  assert.deepEqual((await ok(ben.api('GET', `/v1/messages/${id}`))).mentions, [to(stranger), to(ben)]);
  assert.deepEqual(
    (await rowsOf(cid)).map((r) => r['id']),
    [ben.id],
  );
  await ok(server('POST', `/v1/conversations/${cid}/members`, { userIds: [stranger.id] }));
  assert.deepEqual([await unread(stranger, cid), (await inbox(stranger)).data], [0, []]);
});

test('mentions#deleted: deleting a message takes its mentions away', async () => {
  const { people, cid } = await talk();
  const [anna, ben] = people;
  const ids: string[] = [];
  for (const mentions of [[to(ben)], [{ type: 'everyone' }], [to(ben), { type: 'here' }]])
    ids.push((await ok(trySend(anna, cid, { text: 'x', mentions }), 201)).id);
  assert.equal(await unread(ben, cid), 3);
  await ok(anna.api('DELETE', `/v1/messages/${ids[0]}`));
  assert.equal(await unread(ben, cid), 2);
  await ok(server('DELETE', `/v1/messages/${ids[1]}?hard=true`), 204);
  await ok(server('DELETE', `/v1/messages/${ids[2]}?hard=true`), 204);
  assert.deepEqual([await unread(ben, cid), await rowsOf(cid), (await inbox(ben)).data], [0, [], []]);
});

test('mentions#list: messages that name me, newest first, of conversations that I am in', async () => {
  const { people, cid } = await talk();
  const [anna, ben, cleo] = people;
  const other = await scene.group(cleo, [ben, anna]);
  const ids: string[] = [];
  for (const at of [cid, other.id, cid]) {
    ids.unshift((await ok(trySend(anna, at, { text: `${at}`, mentions: [to(ben)] }), 201)).id);
    await ok(trySend(anna, at, { text: 'not me', mentions: [to(cleo)] }), 201);
  }
  await ok(
    server('POST', `/v1/conversations/${cid}/messages`, { text: 'x', mentions: [{ type: 'everyone' }] }),
    201,
  );
  await ok(ben.api('PUT', `/v1/messages/${ids[0]}/reactions/:ok:`, {}));
  await ok(anna.api('PUT', `/v1/messages/${ids[0]}/pin`));
  const all = await inbox(ben);
  assert.deepEqual([all.data.map((m) => m.id), all.nextCursor], [ids, null]);
  const [{ mentions, reactions, pinnedBy }] = all.data as [any];
  assert.deepEqual([mentions, reactions.own, pinnedBy], [[to(ben)], [':ok:'], anna.id]);
  const paged: string[] = [];
  for (let query: string | null = '?limit=1'; query !== null;) {
    const page: Awaited<ReturnType<typeof inbox>> = await inbox(ben, query);
    paged.push(...page.data.map((m) => m.id));
    query = page.nextCursor && `?limit=1&cursor=${page.nextCursor}`;
  }
  assert.deepEqual(paged, ids);
  const inOne = await inbox(ben, `?conversationId=${cid}&limit=1`);
  const rest = await inbox(ben, `?conversationId=${cid}&limit=1&cursor=${inOne.nextCursor}`);
  assert.deepEqual(
    [...inOne.data, ...rest.data].map((m) => m.id),
    [ids[0], ids[2]],
  );
  const { id: foreign } = await scene.group(cleo, [anna]);
  assertError(await ben.api('GET', `/v1/mentions?conversationId=${foreign}`), 403, 'not_member');
  assertError(await ben.api('GET', '/v1/mentions?conversationId=conv_none'), 404, 'not_found');
  assertError(await ben.api('GET', '/v1/mentions?cursor=nonsense'), 400, 'invalid_request');
  assertError(await server('GET', '/v1/mentions'), 403, 'forbidden');
  await ok(ben.api('DELETE', `/v1/conversations/${other.id}/members/${ben.id}`), 204);
  assert.deepEqual(
    (await inbox(ben)).data.map((m) => m.id),
    [ids[0], ids[2]],
  );
});
