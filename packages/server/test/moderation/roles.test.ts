import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it, test } from 'node:test';
import { operationList } from '@parley/protocol';
import type { Role } from '@parley/protocol';
import { pretendNode } from '../calls/tools.ts';
import { parley } from '../support/cli.ts';
import { assertError } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { environments } from '../support/service.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';

/** members#moderators: what each role may do, operation by operation. */

const { service, scene, server, db } = useService();
setUp(() => pretendNode(db));

/** What a caller of each role finds: a group of its own, in which it has its role. Rows change it in their order. */
interface World {
  by: Api;
  cid: string;
  /** Messages of the owner: one to read and edit, one to delete, one to delete for good. */
  messages: [string, string, string];
  /** The caller's own, or the system's: one to edit, one to delete. */
  own: [string, string];
  /** Of the owner, and the caller's own or the system's. */
  polls: [string, string];
  /** Members: one to remove, one to make a moderator. */
  members: [Actor, Actor];
  owner: Actor;
  moderator: Actor;
  other: Actor;
  self: Actor;
}
type Who = Role | 'stranger' | 'server';
type Outcome = 'yes' | 'forbidden' | 'not_member' | 'not_found' | 'invalid_request';

const everybody = ['owner', 'moderator', 'member', 'stranger', 'server'] as const;
const worlds = new Map<Who, World>();
setUp(async () => {
  for (const who of everybody) worlds.set(who, await world(who));
});

const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };

async function world(who: Who): Promise<World> {
  const [owner, moderator, one, two, self, other] = (await Promise.all(
    ['owner', 'moderator', 'one', 'two', 'self', 'other'].map((name) => scene.actor(name)),
  )) as [Actor, Actor, Actor, Actor, Actor, Actor];
  const inside = who !== 'stranger' && who !== 'server';
  const { id: cid } = await scene.group(owner, [moderator, one, two, ...(inside ? [self] : [])], {
    rules: { joining: 'link' },
  });
  const role = (userId: string, as: string) =>
    server('PATCH', `/v1/conversations/${cid}/members/${userId}`, { role: as });
  assert.equal((await role(moderator.id, 'moderator')).status, 200);
  if (inside) assert.equal((await role(self.id, who)).status, 200);
  const send = async (from: Actor | null): Promise<string> => (await scene.send(from, cid)).id;
  const mine = inside ? self : null;
  return {
    by: who === 'server' ? server : self.api,
    cid,
    messages: [await send(owner), await send(owner), await send(owner)],
    own: [await send(mine), await send(mine)],
    polls: [(await scene.send(owner, cid, { poll })).id, (await scene.send(mine, cid, { poll })).id],
    members: [one, two],
    owner,
    moderator,
    other,
    self,
  };
}

const conversation = ({ cid }: World): string => `/v1/conversations/${cid}`;
const inside = {
  owner: 'yes',
  moderator: 'yes',
  member: 'yes',
  stranger: 'not_member',
  server: 'yes',
} as const;
const owners = { ...inside, moderator: 'forbidden', member: 'forbidden' } as const;
const moderators = { ...inside, member: 'forbidden' } as const;

interface Row {
  /** The operation, and what is special about this use of it. */
  name: string;
  call: (by: Api, of: World) => Promise<Answer>;
  may: Record<Who, Outcome>;
}
const row = (name: string, may: Record<Who, Outcome>, call: Row['call']): Row => ({ name, may, call });

const table: Row[] = [
  row('conversations.get', inside, (by, of) => by('GET', conversation(of))),
  row('conversations.update', owners, (by, of) => by('PATCH', conversation(of), { name: 'New' })),
  row('conversations.mute', { ...inside, server: 'forbidden' }, (by, of) =>
    by('PUT', `${conversation(of)}/mute`),
  ),
  row('conversations.unmute', { ...inside, server: 'forbidden' }, (by, of) =>
    by('DELETE', `${conversation(of)}/mute`),
  ),
  row('conversations.setLevel', { ...inside, server: 'forbidden' }, (by, of) =>
    by('PUT', `${conversation(of)}/notifications`, { level: 'all' }),
  ),
  row('conversations.read', { ...inside, server: 'forbidden' }, (by, of) =>
    by('POST', `${conversation(of)}/read`, { seq: 1 }),
  ),
  row('members.list', inside, (by, of) => by('GET', `${conversation(of)}/members`)),
  row('members.add', owners, (by, of) =>
    by('POST', `${conversation(of)}/members`, { userIds: [of.other.id] }),
  ),
  row('members.remove: a member', moderators, (by, of) =>
    by('DELETE', `${conversation(of)}/members/${of.members[0].id}`),
  ),
  row('members.remove: a moderator', owners, (by, of) =>
    by('DELETE', `${conversation(of)}/members/${of.moderator.id}`),
  ),
  row('members.update: a moderator', { ...owners, owner: 'forbidden' }, (by, of) =>
    by('PATCH', `${conversation(of)}/members/${of.members[1].id}`, { role: 'moderator' }),
  ),
  row('conversations.update: rules', owners, (by, of) =>
    by('PATCH', conversation(of), { rules: { posting: 'all' } }),
  ),
  row('invites.create', moderators, (by, of) => by('POST', `${conversation(of)}/invites`, {})),
  row('invites.list', moderators, (by, of) => by('GET', `${conversation(of)}/invites`)),
  row('invites.delete', moderators, (by, of) => by('DELETE', `${conversation(of)}/invites/lnk_0`)),
  row('conversations.join', { ...inside, stranger: 'not_found', server: 'forbidden' }, (by, of) =>
    by('POST', `${conversation(of)}/join`),
  ),
  row('restrictions.set: a silence', moderators, (by, of) =>
    by('PUT', `${conversation(of)}/restrictions/${of.members[1].id}`, { kind: 'silence' }),
  ),
  row('restrictions.set: a ban of the owner', owners, (by, of) =>
    by('PUT', `${conversation(of)}/restrictions/${of.owner.id}`, { kind: 'ban' }),
  ),
  row('restrictions.list', moderators, (by, of) => by('GET', `${conversation(of)}/restrictions`)),
  row('restrictions.remove', moderators, (by, of) =>
    by('DELETE', `${conversation(of)}/restrictions/${of.members[1].id}`),
  ),
  row('messages.send', inside, (by, of) =>
    by('POST', `${conversation(of)}/messages`, { text: 'x', clientMsgId: randomUUID() }),
  ),
  row('messages.send: for everyone', moderators, (by, of) =>
    by('POST', `${conversation(of)}/messages`, {
      text: 'x',
      mentions: [{ type: 'everyone' }],
      clientMsgId: randomUUID(),
    }),
  ),
  row('messages.list', inside, (by, of) => by('GET', `${conversation(of)}/messages`)),
  row('messages.get', inside, (by, of) => by('GET', `/v1/messages/${of.messages[0]}`)),
  row(
    'messages.update: of another',
    { ...inside, owner: 'forbidden', moderator: 'forbidden', member: 'forbidden' },
    (by, of) => by('PATCH', `/v1/messages/${of.messages[0]}`, { text: 'y', expectedVersion: 1 }),
  ),
  row('messages.update: its own', inside, (by, of) =>
    by('PATCH', `/v1/messages/${of.own[0]}`, { text: 'y', expectedVersion: 1 }),
  ),
  row('messages.delete: of another', moderators, (by, of) => by('DELETE', `/v1/messages/${of.messages[1]}`)),
  row('messages.delete: its own', inside, (by, of) => by('DELETE', `/v1/messages/${of.own[1]}`)),
  row(
    'messages.delete: for good',
    { ...inside, owner: 'forbidden', moderator: 'forbidden', member: 'forbidden', stranger: 'forbidden' },
    (by, of) => by('DELETE', `/v1/messages/${of.messages[2]}?hard=true`),
  ),
  row('events.list', inside, (by, of) => by('GET', `${conversation(of)}/events`)),
  row('reactions.set', { ...inside, server: 'invalid_request' }, (by, of) =>
    by('PUT', `/v1/messages/${of.messages[0]}/reactions/x`, {}),
  ),
  row('reactions.remove', { ...inside, server: 'invalid_request' }, (by, of) =>
    by('DELETE', `/v1/messages/${of.messages[0]}/reactions/x`),
  ),
  row('reactions.list', inside, (by, of) => by('GET', `/v1/messages/${of.messages[0]}/reactions`)),
  row('pins.set', inside, (by, of) => by('PUT', `/v1/messages/${of.messages[0]}/pin`)),
  row('pins.remove', inside, (by, of) => by('DELETE', `/v1/messages/${of.messages[0]}/pin`)),
  row('pins.list', inside, (by, of) => by('GET', `${conversation(of)}/pins`)),
  row('polls.vote', { ...inside, server: 'forbidden' }, (by, of) =>
    by('PUT', `/v1/messages/${of.polls[0]}/votes`, { options: [1] }),
  ),
  row('polls.close: of another', moderators, (by, of) =>
    by('POST', `/v1/messages/${of.polls[0]}/poll/close`),
  ),
  row('polls.close: its own', inside, (by, of) => by('POST', `/v1/messages/${of.polls[1]}/poll/close`)),
  row('reports.create: a message', inside, (by, of) =>
    by('POST', '/v1/reports', { messageId: of.messages[0], reason: 'spam' }),
  ),
  row('reports.create: a conversation', inside, (by, of) =>
    by('POST', '/v1/reports', { conversationId: of.cid, reason: 'spam' }),
  ),
  row('reports.create: a user', { ...inside, stranger: 'forbidden' }, (by, of) =>
    by('POST', '/v1/reports', { userId: of.members[1].id, reason: 'spam' }),
  ),
  row('uploads.create', inside, (by, of) =>
    by('POST', '/v1/uploads', {
      conversationId: of.cid,
      filename: 'a.png',
      size: 10,
      contentType: 'image/png',
    }),
  ),
  row('calls.start', { ...inside, server: 'invalid_request' }, (by, of) =>
    by('POST', '/v1/calls', { conversationId: of.cid, kind: 'audio' }),
  ),
  row('calls.list', inside, (by, of) => by('GET', `/v1/calls?conversationId=${of.cid}`)),
  // The last one, because it ends everything.
  row(
    'conversations.delete',
    { owner: 'forbidden', moderator: 'forbidden', member: 'forbidden', stranger: 'forbidden', server: 'yes' },
    (by, of) => by('DELETE', conversation(of)),
  ),
];

/** Operations of clients that concern no conversation, or one only by what a row above has made. */
const elsewhere = [
  'uploads.complete',
  'attachments.url',
  'calls.get',
  'calls.join',
  'calls.decline',
  'calls.leave',
  'conversations.create',
  'conversations.list',
  'conversations.preview',
  'conversations.discover',
  'invites.preview',
  'invites.accept',
  'mentions.list',
  'sync',
];

test('members#moderators: the table has every operation of conversations, members, messages, files and calls', () => {
  const tags = [
    'Conversations',
    'Members',
    'Restrictions',
    'Joining',
    'Read state',
    'Messages',
    'Sync and events',
    'Reactions',
    'Pins',
    'Polls',
    'Mentions',
    'Reports',
    'Calls',
  ];
  const named = new Set([...table.map(({ name }) => name.split(':')[0]), ...elsewhere]);
  const missing = operationList.filter(
    (o) => o.callers.includes('client') && tags.includes(o.tag) && !named.has(o.name),
  );
  assert.deepEqual(
    missing.map((o) => o.name),
    [],
    'say above who may',
  );
});

describe('members#moderators: every operation for every role', () => {
  for (const { name, call, may } of table)
    it(name, async () => {
      const outcomes = await Promise.all(
        everybody.map(async (who): Promise<[Who, string]> => {
          const of = worlds.get(who)!;
          const answer = await call(of.by, of);
          return [who, answer.status < 300 ? 'yes' : answer.body.error.code];
        }),
      );
      assert.deepEqual(Object.fromEntries(outcomes), may);
    });
});

test('members#moderators: over the socket a moderator deletes the messages of others and edits only its own', async () => {
  const of = await world('moderator');
  const socket = await scene.online(of.self);
  await socket.refused('message.update', { id: of.messages[0], text: 'y', expectedVersion: 1 }, 'forbidden');
  await socket.request('message.delete', { id: of.messages[0] });
  const { d } = await socket.event('message.deleted', of.cid);
  assert.equal(d.id, of.messages[0]);
});

test('members#role: owners make moderators where the environment says so, and touch no owner', async () => {
  const of = await world('owner');
  const set = (by: Api, userId: string, role: string) =>
    by('PATCH', `${conversation(of)}/members/${userId}`, { role });
  assertError(await set(of.self.api, of.members[0].id, 'moderator'), 403, 'forbidden');
  await parley(service, 'env', 'set', environments.dev.id, '--owners-set-roles', 'true');
  try {
    const { status, body } = await set(of.self.api, of.members[0].id, 'moderator');
    assert.equal(status, 200);
    assert.equal(body.role, 'moderator');
    const event = (await scene.events(of.cid)).at(-1)!;
    assert.deepEqual(
      { type: event.type, userId: event.userId, role: event.role, actorId: event.actorId },
      { type: 'member.updated', userId: of.members[0].id, role: 'moderator', actorId: of.self.id },
    );
    assertError(await set(of.self.api, of.members[0].id, 'owner'), 403, 'forbidden', 'role');
    assertError(await set(of.moderator.api, of.members[0].id, 'member'), 403, 'forbidden');
    assertError(await set(of.moderator.api, of.moderator.id, 'owner'), 403, 'forbidden');
    assertError(await set(of.other.api, of.members[0].id, 'member'), 403, 'not_member');
    assertError(await set(of.self.api, of.self.id, 'member'), 403, 'forbidden');
    assertError(await set(of.self.api, of.other.id, 'member'), 404, 'not_found');
    assert.equal((await set(of.self.api, of.moderator.id, 'member')).status, 200);
    assertError(await of.moderator.api('DELETE', `/v1/messages/${of.messages[0]}`), 403, 'forbidden');
  } finally {
    await parley(service, 'env', 'set', environments.dev.id, '--owners-set-roles', 'false');
  }
});
