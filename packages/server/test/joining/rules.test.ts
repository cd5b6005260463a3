import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pretendNode } from '../calls/tools.ts';
import { assertError } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import type { TestSocket } from '../support/socket.ts';
import { setUp, useService } from '../support/use.ts';

/** conversations#rules: every rule for every role, over REST and the socket. */

const { scene, server, db } = useService();
setUp(() => pretendNode(db));

const roles = ['owner', 'moderator', 'member'] as const;
type Who = (typeof roles)[number] | 'server';
type Outcomes = Record<Who, string>;

const actors = {} as Record<(typeof roles)[number], Actor>;
const sockets = {} as Record<(typeof roles)[number], TestSocket>;
/** A message of each, to edit and pin, and one with a poll. */
const own = {} as Record<Who, string>;
let cid: string;
let poll: string;
let path: string;
setUp(async () => {
  for (const role of roles) actors[role] = await scene.actor(role);
  const { owner, moderator, member } = actors;
  cid = (await scene.group(owner, [moderator, member])).id;
  path = `/v1/conversations/${cid}`;
  await server('PATCH', `${path}/members/${moderator.id}`, { role: 'moderator' });
  for (const role of roles) {
    sockets[role] = await scene.online(actors[role]);
    own[role] = (await scene.send(actors[role], cid)).id;
  }
  own.server = (await scene.send(null, cid)).id;
  poll = (
    await scene.send(owner, cid, { poll: { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] } })
  ).id;
});

const yes: Outcomes = { owner: 'yes', moderator: 'yes', member: 'yes', server: 'yes' };
const moderators: Outcomes = { ...yes, member: 'forbidden' };
const announcing: Outcomes = { ...yes, member: 'restricted' };

/** Where a server does something for a user, it does it for the member, whom the rule binds. */
const actions: Record<string, (by: Api, who: Who) => Promise<Answer>> = {
  send: (by, who) =>
    by('POST', `${path}/messages`, {
      text: 'x',
      clientMsgId: randomUUID(),
      ...(who === 'server' ? { senderId: actors.member.id } : {}),
    }),
  edit: async (by, who) => {
    const { version } = (await server('GET', `/v1/messages/${own[who]}`)).body;
    return by('PATCH', `/v1/messages/${own[who]}`, { text: 'y', expectedVersion: version });
  },
  upload: (by) =>
    by('POST', '/v1/uploads', {
      conversationId: cid,
      filename: 'a.png',
      size: 10,
      contentType: 'image/png',
    }),
  call: async (by, who) => {
    const started = await by('POST', '/v1/calls', {
      conversationId: cid,
      kind: 'audio',
      ...(who === 'server' ? { callerId: actors.member.id } : {}),
    });
    if (started.status < 300) await server('POST', `/v1/calls/${started.body.id}/end`);
    return started;
  },
  react: (by, who) =>
    by(
      'PUT',
      `/v1/messages/${own.owner}/reactions/${who}`,
      who === 'server' ? { userId: actors.member.id } : {},
    ),
  unreact: (by, who) =>
    by(
      'DELETE',
      `/v1/messages/${own.owner}/reactions/${who}${who === 'server' ? `?userId=${actors.member.id}` : ''}`,
    ),
  pin: (by, who) => by('PUT', `/v1/messages/${own[who]}/pin`),
  unpin: (by, who) => by('DELETE', `/v1/messages/${own[who]}/pin`),
  everyone: (by) =>
    by('POST', `${path}/messages`, {
      text: 'x',
      mentions: [{ type: 'everyone' }],
      clientMsgId: randomUUID(),
    }),
  vote: (by, who) =>
    who === 'server'
      ? Promise.resolve({ status: 200 } as Answer)
      : by('PUT', `/v1/messages/${poll}/votes`, { options: [1] }),
  read: (by, who) =>
    who === 'server' ? Promise.resolve({ status: 200 } as Answer) : by('POST', `${path}/read`, { seq: 1 }),
  rules: (by) => by('PATCH', path, { rules: {} }),
};
const frames: Record<string, (who: (typeof roles)[number]) => [t: string, d: object]> = {
  send: () => ['message.send', { cid, text: 'x', clientMsgId: randomUUID() }],
  react: (who) => ['reaction.set', { id: own.owner, emoji: `s-${who}`, on: true }],
  unreact: (who) => ['reaction.set', { id: own.owner, emoji: `s-${who}`, on: false }],
  everyone: () => [
    'message.send',
    { cid, text: 'x', mentions: [{ type: 'everyone' }], clientMsgId: randomUUID() },
  ],
  vote: () => ['poll.vote', { id: poll, options: [1] }],
};

const usual: Record<string, Outcomes> = {
  send: yes,
  edit: yes,
  upload: yes,
  call: yes,
  react: yes,
  unreact: yes,
  pin: yes,
  unpin: yes,
  everyone: moderators,
  vote: yes,
  read: yes,
  rules: { ...moderators, moderator: 'forbidden' },
};
const owners = { owner: 'restricted', moderator: 'restricted', member: 'restricted' };
/** What each rule changes. */
const table: [rules: Record<string, unknown>, changes: Record<string, Outcomes>][] = [
  [{}, {}],
  [
    { posting: 'moderators' },
    { send: announcing, edit: announcing, upload: announcing, call: announcing, everyone: moderators },
  ],
  [
    { posting: 'moderators', mentionEveryone: 'all' },
    { send: announcing, edit: announcing, upload: announcing, call: announcing, everyone: announcing },
  ],
  [{ pinning: 'moderators' }, { pin: moderators, unpin: moderators }],
  [{ mentionEveryone: 'all' }, { everyone: yes }],
  [{ reacting: 'none' }, { react: { ...yes, ...owners } }],
  [{ joining: 'open', listed: true, defaultLevel: 'mentions' }, {}],
];
const all = {
  posting: 'all',
  pinning: 'all',
  mentionEveryone: 'moderators',
  reacting: 'all',
  joining: 'closed',
  listed: false,
  defaultLevel: null,
};

/** Asks again where it was too much at once: the table is not about that. */
async function patient(ask: () => Promise<{ code: string; retryAfterMs?: number }>): Promise<string> {
  for (let tries = 0; ; tries++) {
    const { code, retryAfterMs } = await ask();
    if (code !== 'rate_limited' || tries === 50) return code;
    await delay(retryAfterMs);
  }
}

describe('conversations#rules, T7.1: every rule for every role', () => {
  for (const [rules, changes] of table)
    it(JSON.stringify(rules), async () => {
      const set = await server('PATCH', path, { rules: { ...all, ...rules } });
      assert.equal(set.status, 200, JSON.stringify(set.body));
      assert.deepEqual(set.body.rules ?? {}, rules, 'only what differs from the default is shown');
      const expected = { ...usual, ...changes };
      for (const [action, may] of Object.entries(expected)) {
        const found: Partial<Outcomes> = {};
        for (const who of [...roles, 'server'] as const) {
          found[who] = await patient(async () => {
            const answer = await actions[action]!(who === 'server' ? server : actors[who].api, who);
            return answer.status < 300 ? { code: 'yes' } : answer.body.error;
          });
        }
        assert.deepEqual(found, may, `${action} over REST`);
        const frame = frames[action];
        if (!frame) continue;
        for (const who of roles) {
          const code = await patient(async () => {
            const answer = await sockets[who].ask(...frame(who));
            return answer.t === 'error' ? (answer as any) : { code: 'yes' };
          });
          assert.equal(code, may[who], `${action} by ${who} over the socket`);
        }
      }
    });
});

test('conversations#posting, T7.2: in announcement mode members read, react, repeat and leave; what they sent before stays', async () => {
  const [owner, member] = await Promise.all([scene.actor('owner'), scene.actor('member')]);
  const { id } = await scene.group(owner, [member], { rules: { posting: 'moderators' } });
  await server('PATCH', `/v1/conversations/${id}`, { rules: { posting: 'all' } });
  const first = await scene.send(member, id, { text: 'early', clientMsgId: 'early' });
  const socket = await scene.online(member);
  const set = await owner.api('PATCH', `/v1/conversations/${id}`, { rules: { posting: 'moderators' } });
  const { d } = await socket.event('conversation.updated', id);
  assert.deepEqual(d, { changes: { rules: { posting: 'moderators' } }, actorId: owner.id });
  assert.deepEqual((await scene.item(member, id)).rules, { posting: 'moderators' });
  // Nothing changes, so nothing is told.
  const again = await owner.api('PATCH', `/v1/conversations/${id}`, { rules: { posting: 'moderators' } });
  assert.equal(again.body.lastSeq, set.body.lastSeq);

  const send = (clientMsgId: string) =>
    member.api('POST', `/v1/conversations/${id}/messages`, { text: 'x', clientMsgId });
  const { details, retryAfterMs } = assertError(await send('late'), 403, 'restricted') as any;
  assert.deepEqual([details, retryAfterMs], [{ rule: 'posting' }, undefined]);
  assert.deepEqual((await send('early')).body.id, first.id, 'a repetition gets its original');
  const news = await scene.send(owner, id, { text: 'news' });
  assert.equal((await scene.item(member, id)).unreadCount, 1);
  await socket.request('reaction.set', { id: news.id, emoji: '👍', on: true });
  assert.equal(
    (await member.api('POST', `/v1/conversations/${id}/read`, { seq: news.seq })).body.unreadCount,
    0,
  );
  assert.equal((await member.api('DELETE', `/v1/messages/${first.id}`)).status, 200);
  assert.equal((await member.api('DELETE', `/v1/conversations/${id}/members/${member.id}`)).status, 204);
});

test('conversations#slow-mode: who leaves and joins again waits on', async () => {
  const [owner, member] = await Promise.all([scene.actor('owner'), scene.actor('member')]);
  const { id } = await scene.group(owner, [member], { rules: { slowModeSeconds: 3_600, joining: 'open' } });
  await scene.send(member, id);
  for (let i = 0; i < 2; i++) {
    await member.api('DELETE', `/v1/conversations/${id}/members/${member.id}`);
    assert.equal((await member.api('POST', `/v1/conversations/${id}/join`)).status, 200);
    const answer = await member.api('POST', `/v1/conversations/${id}/messages`, {
      text: 'x',
      clientMsgId: randomUUID(),
    });
    assertError(answer, 429, 'rate_limited');
  }
});

test('conversations#rules: what is wrong is refused, and the default level is that of members who chose none', async () => {
  const [owner, one, two] = await Promise.all([scene.actor('o'), scene.actor('one'), scene.actor('two')]);
  const { id } = await scene.group(owner, [one, two]);
  const rule = (rules: unknown) => owner.api('PATCH', `/v1/conversations/${id}`, { rules });
  for (const rules of [
    { listed: true },
    { listed: true, joining: 'link' },
    { posting: 'nobody' },
    { defaultLevel: 'none' },
  ])
    assertError(await rule(rules), 400, 'invalid_request');
  // Of features that are not there yet.
  for (const rules of [{ threads: 'off' }, { expireSeconds: 60 }])
    assertError(await rule(rules), 400, 'unknown_field');
  assert.equal((await rule({ joining: 'open', listed: true })).status, 200);
  assertError(await rule({ joining: 'closed' }), 400, 'invalid_request');
  const { id: direct } = await scene.direct(one, two);
  assertError(
    await server('PATCH', `/v1/conversations/${direct}`, { rules: { posting: 'all' } }),
    400,
    'invalid_request',
  );
  assertError(
    await server('POST', '/v1/conversations', { type: 'direct', members: [one.id, owner.id], rules: {} }),
    400,
    'invalid_request',
  );

  await one.api('PUT', `/v1/conversations/${id}/notifications`, { level: 'all' });
  assert.equal((await rule({ defaultLevel: 'mentions' })).status, 200);
  assert.equal((await scene.item(one, id)).level, 'all');
  assert.equal((await scene.item(two, id)).level, 'mentions');
  await two.api('PUT', `/v1/conversations/${id}/mute`);
  await two.api('DELETE', `/v1/conversations/${id}/mute`);
  assert.equal((await scene.item(two, id)).level, 'mentions');
  assert.equal((await rule({ defaultLevel: null })).status, 200);
  assert.equal((await scene.item(two, id)).level, 'all');
});
