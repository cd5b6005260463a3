import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';

/** joining.md. */

const { service, scene, server, sql } = useService();

const path = (cid: string): string => `/v1/conversations/${cid}`;
const join = (by: Actor, cid: string): Promise<Answer> => by.api('POST', `${path(cid)}/join`);
const accept = (by: Actor, token: string): Promise<Answer> => by.api('POST', `/v1/invites/${token}`);
const rule = (cid: string, rules: object): Promise<Answer> => server('PATCH', path(cid), { rules });
const ban = (by: Api, cid: string, who: Actor) =>
  by('PUT', `${path(cid)}/restrictions/${who.id}`, { kind: 'ban' });
const membersOf = async (cid: string): Promise<string[]> =>
  (await server('GET', path(cid))).body.members.map((m: { userId: string }) => m.userId);
const invite = async (by: Api, cid: string, fields: object = {}) => {
  const made = await by('POST', `${path(cid)}/invites`, fields);
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body as { id: string; token: string; uses: number; maxUses: number | null; expiresAt: string };
};
/** A conversation that others have locked for long is tried again. */
async function insisting(run: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; ; tries++) {
    const answer = await run();
    if (answer.status !== 503 || tries === 60) return answer;
  }
}

test('joining#join: open groups let users in, others are as unknown ones, and everybody is told how somebody came', async () => {
  const [owner, ann, ben] = await Promise.all(['owner', 'ann', 'ben'].map((n) => scene.actor(n)));
  const { id: cid } = await scene.group(owner!, [], { rules: { joining: 'open' } });
  const receiver = await startReceiver();
  try {
    const hook = await server('POST', '/v1/webhooks', { url: receiver.url, events: ['member.added'] });
    assert.equal(hook.status, 201, JSON.stringify(hook.body));
    const socket = await scene.online(owner!);
    const joined = await join(ann!, cid);
    assert.equal(joined.status, 200, JSON.stringify(joined.body));
    assert.deepEqual(joined.body, (await ann!.api('GET', path(cid))).body);
    const { d, seq } = await socket.event('member.added', cid);
    assert.deepEqual(d, { userIds: [ann!.id], userId: ann!.id, actorId: ann!.id, via: 'join' });
    const again = await join(ann!, cid);
    assert.deepEqual([again.status, again.body], [200, joined.body], 'nothing changes');
    await server('POST', `${path(cid)}/members`, { userIds: [ben!.id] });
    assert.equal((await socket.event('member.added', cid)).d.via, 'added');
    const events = await scene.events(cid);
    assert.deepEqual(
      events.filter((e) => e.type === 'member.added').map((e) => [e.seq, e.via]),
      [
        [seq, 'join'],
        [seq! + 1, 'added'],
      ],
    );
    const told = await receiver.wait(2, (r) => r.data.conversationId === cid);
    assert.deepEqual(told.map((r) => r.data.via).sort(), ['added', 'join']);
  } finally {
    await receiver.close();
  }
  // A member may repeat it whatever the rule has become; others find nothing.
  const stranger = await scene.actor();
  for (const joining of ['link', 'closed']) {
    assert.equal((await rule(cid, { joining })).status, 200);
    const [closed, unknown] = [await join(stranger, cid), await join(stranger, `conv_0${randomUUID()}`)];
    assertError(closed, 404, 'not_found');
    assert.equal(closed.body.error.message, unknown.body.error.message);
    assert.equal((await join(ann!, cid)).status, 200);
  }
  const { id: direct } = await scene.direct(owner!, ann!);
  assertError(await join(stranger, direct), 404, 'not_found');
});

test('joining#bans: who is banned comes back neither by joining nor by a link, whatever is tried at the same time', async () => {
  const [owner, ann] = await Promise.all([scene.actor('owner'), scene.actor('ann')]);
  const { id: cid } = await scene.group(owner, [ann], { rules: { joining: 'open', listed: true } });
  const { token } = await invite(owner.api, cid, { maxUses: 5 });
  assert.equal((await ban(owner.api, cid, ann)).status, 200);
  assertError(await join(ann, cid), 403, 'restricted');
  assertError(await accept(ann, token), 403, 'restricted');
  assert.equal((await owner.api('GET', `${path(cid)}/invites`)).body.data[0].uses, 0);
  await server('DELETE', `${path(cid)}/restrictions/${ann.id}`);

  for (let round = 0; round < 8; round++) {
    const user = await scene.actor();
    const [joined, banned] = await Promise.all([
      insisting(() => (round % 2 ? accept(user, token) : join(user, cid))),
      insisting(() => ban(owner.api, cid, user)),
    ]);
    assert.equal(banned.status, 200);
    assert.ok([200, 403, 404].includes(joined.status), JSON.stringify(joined.body));
    assert.ok(!(await membersOf(cid)).includes(user.id), 'a ban has the last word');
  }
});

test('joining#races: removing members and closing the group leave what the events say', async () => {
  const owner = await scene.actor('owner');
  const { id: cid } = await scene.group(owner, [], { rules: { joining: 'open', listed: true } });
  for (let round = 0; round < 8; round++) {
    const user = await scene.actor();
    const remove = () => server('DELETE', `${path(cid)}/members/${user.id}`);
    await Promise.all([
      insisting(() => join(user, cid)),
      insisting(remove),
      insisting(() => join(user, cid)),
    ]);
    const moves = (await scene.events(cid)).filter((e) => e.userId === user.id).map((e) => e.type);
    const isIn = (await membersOf(cid)).includes(user.id);
    assert.equal(isIn, moves.at(-1) === 'member.added', moves.join());
    moves.forEach((type, i) => assert.equal(type, i % 2 ? 'member.removed' : 'member.added', moves.join()));
  }
  const users = await Promise.all(Array.from({ length: 6 }, () => scene.actor()));
  const { lastSeq } = (await server('GET', path(cid))).body;
  const [closed, ...joined] = await Promise.all([
    insisting(() => rule(cid, { joining: 'closed', listed: false })),
    ...users.map((user) => insisting(() => join(user, cid))),
  ]);
  assert.equal(closed.status, 200);
  const events = await scene.events(cid, lastSeq);
  const end = events.find((e) => e.type === 'conversation.updated').seq;
  for (const [i, { status }] of joined.entries()) {
    const added = events.find((e) => e.userId === users[i]!.id);
    assert.equal(status, added ? 200 : 404);
    if (added) assert.ok(added.seq < end, 'nobody joins after the group was closed');
  }
});

test('joining#links, T7.3: a link lets in as many as it says, of a hundred at once', async () => {
  const owner = await scene.actor('owner');
  const { id: cid } = await scene.group(owner, [], { rules: { joining: 'link' } });
  const { id, token, ...link } = await invite(owner.api, cid, { maxUses: 10 });
  assert.deepEqual([link.uses, link.maxUses], [0, 10]);
  const users = await Promise.all(Array.from({ length: 100 }, () => scene.actor()));
  const answers = await Promise.all(users.map((user) => insisting(() => accept(user, token))));
  assert.equal(answers.filter((a) => a.status === 200).length, 10);
  for (const answer of answers) if (answer.status !== 200) assertError(answer, 404, 'not_found');
  // Whoever missed the answer asks again.
  for (const [i, { status }] of answers.entries())
    if (status === 200) assert.equal((await accept(users[i]!, token)).status, 200);
  assert.equal((await membersOf(cid)).length, 11);
  const [row] = await sql('SELECT uses FROM invite_links WHERE id = $1', [id]);
  assert.equal(row!['uses'], 10);
  const added = (await scene.events(cid)).filter((e) => e.type === 'member.added');
  assert.deepEqual([added.length, added.every((e) => e.via === 'link')], [10, true]);
  assert.deepEqual((await owner.api('GET', `${path(cid)}/invites`)).body.data, [], 'it works no more');
});

test('joining#links: what ended, is used up, was revoked or never was looks the same; tokens are kept nowhere', async () => {
  const [owner, ann, ben] = await Promise.all([scene.actor('owner'), scene.actor('ann'), scene.actor('ben')]);
  const { id: cid } = await scene.group(owner, [], { name: 'Quiet', metadata: { color: 'blue' } });
  const refused = await owner.api('POST', `${path(cid)}/invites`, {});
  assert.deepEqual((assertError(refused, 409, 'state_conflict') as any).details, { joining: 'closed' });
  await rule(cid, { joining: 'link' });
  const kept = await invite(owner.api, cid);
  const { body: shown } = await ann.api('GET', `/v1/invites/${kept.token}`);
  const about = {
    id: cid,
    type: 'group',
    name: 'Quiet',
    metadata: { color: 'blue' },
    rules: { joining: 'link' },
  };
  assert.deepEqual(shown, { ...about, memberCount: 1 });
  assertError(await ann.api('GET', `${path(cid)}/preview`), 404, 'not_found');

  const [used, ended, revoked] = [
    await invite(owner.api, cid, { maxUses: 1 }),
    await invite(owner.api, cid, { expiresIn: 60 }),
    await invite(owner.api, cid),
  ];
  assert.equal((await accept(ann, used.token)).status, 200);
  await sql(`UPDATE invite_links SET expires_at = clock_timestamp() WHERE id = $1`, [ended.id]);
  assert.equal((await owner.api('DELETE', `${path(cid)}/invites/${revoked.id}`)).status, 204);
  assert.equal((await owner.api('DELETE', `${path(cid)}/invites/${revoked.id}`)).status, 204);
  const elsewhere = createScene(service.url, 'other');
  const other = await elsewhere.actor();
  const dead = [used.token, ended.token, revoked.token, randomUUID(), 'x', '%F0%9F%91%8D'];
  const answers = [
    ...(await Promise.all(dead.flatMap((t) => [ben.api('GET', `/v1/invites/${t}`), accept(ben, t)]))),
    await accept(other, kept.token),
    await other.api('GET', `/v1/invites/${kept.token}`),
  ];
  await rule(cid, { joining: 'closed' });
  answers.push(await accept(ben, kept.token), await ben.api('GET', `/v1/invites/${kept.token}`));
  const words = answers.map((a) => [a.status, { ...a.body.error, requestId: '' }]);
  for (const answer of words) assert.deepEqual(answer, words[0]);
  assert.equal(words[0]![0], 404);
  // The rule lets it sleep; it does not end it.
  await rule(cid, { joining: 'open' });
  assert.equal((await accept(ben, kept.token)).body.id, cid);
  assert.equal((await accept(ben, kept.token)).status, 200);
  const { data } = (await owner.api('GET', `${path(cid)}/invites`)).body;
  assert.deepEqual(
    data.map((l: any) => [l.id, l.uses, l.createdBy, 'token' in l]),
    [[kept.id, 1, owner.id, false]],
    'who is a member already uses nothing up',
  );
  assert.ok(kept.token.length >= 22);

  for (let i = 1; i < limits.invitesPerConversation; i++) await invite(server, cid);
  const full = await owner.api('POST', `${path(cid)}/invites`, {});
  assert.equal((assertError(full, 409, 'limit_reached') as any).param, 'invites');
});

test('joining#full, T7.4: nobody is the 501st member, and nothing is written', async () => {
  const [owner, ann] = await Promise.all([scene.actor('owner'), scene.actor('ann')]);
  const ids = Array.from({ length: limits.groupMembers }, () => `crowd-${randomUUID()}`);
  const made = await server('POST', '/v1/conversations', {
    type: 'group',
    members: [...ids.slice(1), owner.id],
    ownerId: owner.id,
    rules: { joining: 'open' },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const cid: string = made.body.id;
  const { token } = await invite(owner.api, cid);
  const { lastSeq } = (await server('GET', path(cid))).body;
  for (const answer of [await join(ann, cid), await accept(ann, token)])
    assert.equal((assertError(answer, 409, 'limit_reached') as any).param, 'members');
  assertError(await server('POST', `${path(cid)}/members`, { userIds: [ann.id] }), 400, 'invalid_request');
  assert.equal((await server('GET', path(cid))).body.lastSeq, lastSeq);
  assert.equal((await owner.api('GET', `${path(cid)}/invites`)).body.data[0].uses, 0);
  await server('DELETE', `${path(cid)}/members/${ids[1]}`);
  assert.equal((await accept(ann, token)).status, 200, 'room for one');
});

test('joining#discover: listed groups are found by words of their name, those with most members first', async () => {
  const mine = randomUUID().replaceAll('-', '');
  const [owner, ann] = await Promise.all([scene.actor('owner'), scene.actor('ann')]);
  const open = { joining: 'open', listed: true };
  const make = (name: string, members: Actor[], rules: object = open) =>
    scene.group(owner, members, { name: `${name} ${mine}`, rules, metadata: { name } });
  const [big, small, , hidden] = [
    await make('Café Zürich', [ann]),
    await make('Cafe Ülm', []),
    await make('Anders', []),
    await make('Café Hidden', [], { joining: 'open' }),
  ];
  const find = async (q: string, by: Api = ann.api): Promise<string[]> =>
    (await by('GET', `/v1/conversations/public?q=${encodeURIComponent(q)}`)).body.data.map(
      (c: any) => c.metadata.name,
    );
  assert.deepEqual(await find(`cafe ${mine}`), ['Café Zürich', 'Cafe Ülm']);
  assert.deepEqual(await find(mine, server), ['Café Zürich', 'Anders', 'Cafe Ülm']);
  assert.deepEqual(await find(`${mine} ZUR`), ['Café Zürich']);
  assert.deepEqual(await find(`ZUR ${mine}`), [], 'only the last word may be a beginning');
  assert.deepEqual(await find('?!'), []);
  const pages: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { body }: Answer = await ann.api('GET', `/v1/conversations/public?q=${mine}&limit=1${cursor}`);
    pages.push(...body.data.map((c: any) => `${c.memberCount} ${c.metadata.name}`));
    cursor = body.nextCursor && `&cursor=${body.nextCursor}`;
  }
  assert.deepEqual(pages, ['2 Café Zürich', '1 Anders', '1 Cafe Ülm']);
  const { body: seen } = await ann.api('GET', `${path(small.id)}/preview`);
  assert.deepEqual(seen, {
    id: small.id,
    type: 'group',
    name: `Cafe Ülm ${mine}`,
    metadata: { name: 'Cafe Ülm' },
    memberCount: 1,
    rules: open,
  });
  assertError(await owner.api('GET', `${path(hidden.id)}/preview`), 404, 'not_found');

  // Members, the name, the rule and the end of a group are followed.
  for (let i = 0; i < 2; i++) await join(await scene.actor(), small.id);
  assert.deepEqual((await find(mine))[0], 'Cafe Ülm');
  await server('PATCH', path(big.id), { name: `Tea ${mine}` });
  assert.deepEqual(await find(`${mine} caf`), ['Cafe Ülm']);
  await server('PATCH', path(small.id), { rules: { listed: false } });
  assert.deepEqual(await find(mine), ['Café Zürich', 'Anders']);
  await server('DELETE', path(big.id));
  assert.deepEqual(await find(mine), ['Anders']);
  const all = await ann.api('GET', '/v1/conversations/public?limit=200');
  assert.ok(all.body.data.some((c: any) => c.name === `Anders ${mine}`));
  assert.deepEqual(await find(mine, createScene(service.url, 'other').server), [], 'of one environment');
});

test('joining#erasure: the links of an erased user go, and the listing counts one member less', async () => {
  const [owner, ann] = await Promise.all([scene.actor('owner'), scene.actor('ann')]);
  const { id: cid } = await scene.group(owner, [ann], { rules: { joining: 'open', listed: true } });
  await server('PATCH', `${path(cid)}/members/${ann.id}`, { role: 'moderator' });
  const { token } = await invite(ann.api, cid);
  assert.equal((await server('DELETE', `/v1/users/${ann.id}?messages=delete`)).status, 204);
  const ben = await scene.actor();
  assertError(await ben.api('GET', `/v1/invites/${token}`), 404, 'not_found');
  assert.equal((await ben.api('GET', `${path(cid)}/preview`)).body.memberCount, 1);
});

test('joining#rate: a user tries to join at most 60 times in an hour', async () => {
  const ann = await scene.actor('ann');
  const { id: cid } = await scene.group(null, [ann], { rules: { joining: 'open' } });
  const answers: number[] = [];
  while (answers.length < 62) {
    const { status, body } = await (answers.length % 2 ? accept(ann, 'x') : join(ann, cid));
    // The user's own limit of requests is another one, and passes.
    if (status === 429 && body.error.retryAfterMs < 60_000) continue;
    answers.push(status);
  }
  assert.deepEqual(answers.slice(-3), [404, 429, 429]);
});
