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

/** One who asks, with what the question needs: a group of its own, in which it has its role. */
interface Asked {
  cid: string;
  /** A message, a member and a moderator of others. */
  messageId: string;
  ownMessageId: string;
  member: Actor;
  moderator: Actor;
  other: Actor;
  self: Actor;
}
type Who = Role | 'stranger' | 'server';
type Outcome = 'yes' | 'forbidden' | 'not_member' | 'invalid_request';

const everybody = ['owner', 'moderator', 'member', 'stranger', 'server'] as const;

async function ask(who: Who): Promise<{ by: Api; of: Asked }> {
  const [owner, moderator, member, self, other] = await Promise.all(
    ['owner', 'moderator', 'member', 'self', 'other'].map((name) => scene.actor(name)),
  ) as [Actor, Actor, Actor, Actor, Actor];
  const inside = who !== 'stranger' && who !== 'server';
  const { id: cid } = await scene.group(owner, [moderator, member, ...(inside ? [self] : [])]);
  const role = (userId: string, as: string) =>
    server('PATCH', `/v1/conversations/${cid}/members/${userId}`, { role: as });
  assert.equal((await role(moderator.id, 'moderator')).status, 200);
  if (inside) assert.equal((await role(self.id, who)).status, 200);
  const { id: messageId } = await scene.send(owner, cid);
  const { id: ownMessageId } = await scene.send(inside ? self : null, cid);
  return {
    by: who === 'server' ? server : self.api,
    of: { cid, messageId, ownMessageId, member, moderator, other, self },
  };
}

const conversation = ({ cid }: Asked): string => `/v1/conversations/${cid}`;
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
  call: (by: Api, of: Asked) => Promise<Answer>;
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
  row('conversations.read', { ...inside, server: 'forbidden' }, (by, of) =>
    by('POST', `${conversation(of)}/read`, { seq: 1 }),
  ),
  row(
    'conversations.delete',
    { owner: 'forbidden', moderator: 'forbidden', member: 'forbidden', stranger: 'forbidden', server: 'yes' },
    (by, of) => by('DELETE', conversation(of)),
  ),
  row('members.list', inside, (by, of) => by('GET', `${conversation(of)}/members`)),
  row('members.add', owners, (by, of) =>
    by('POST', `${conversation(of)}/members`, { userIds: [of.other.id] }),
  ),
  row('members.remove: a member', moderators, (by, of) =>
    by('DELETE', `${conversation(of)}/members/${of.member.id}`),
  ),
  row('members.remove: a moderator', owners, (by, of) =>
    by('DELETE', `${conversation(of)}/members/${of.moderator.id}`),
  ),
  row('members.update: a moderator', { ...owners, owner: 'forbidden' }, (by, of) =>
    by('PATCH', `${conversation(of)}/members/${of.member.id}`, { role: 'moderator' }),
  ),
  row('messages.send', inside, (by, of) =>
    by('POST', `${conversation(of)}/messages`, { text: 'x', clientMsgId: randomUUID() }),
  ),
  row('messages.list', inside, (by, of) => by('GET', `${conversation(of)}/messages`)),
  row('messages.get', inside, (by, of) => by('GET', `/v1/messages/${of.messageId}`)),
  row(
    'messages.update: of another',
    { ...inside, owner: 'forbidden', moderator: 'forbidden', member: 'forbidden' },
    (by, of) => by('PATCH', `/v1/messages/${of.messageId}`, { text: 'y', expectedVersion: 1 }),
  ),
  row('messages.update: its own', inside, (by, of) =>
    by('PATCH', `/v1/messages/${of.ownMessageId}`, { text: 'y', expectedVersion: 1 }),
  ),
  row('messages.delete: of another', moderators, (by, of) => by('DELETE', `/v1/messages/${of.messageId}`)),
  row('messages.delete: its own', inside, (by, of) => by('DELETE', `/v1/messages/${of.ownMessageId}`)),
  row(
    'messages.delete: for good',
    { ...inside, owner: 'forbidden', moderator: 'forbidden', member: 'forbidden', stranger: 'forbidden' },
    (by, of) => by('DELETE', `/v1/messages/${of.messageId}?hard=true`),
  ),
  row('events.list', inside, (by, of) => by('GET', `${conversation(of)}/events`)),
  row('reactions.set', { ...inside, server: 'invalid_request' }, (by, of) =>
    by('PUT', `/v1/messages/${of.messageId}/reactions/x`, {}),
  ),
  row('reactions.remove', { ...inside, server: 'invalid_request' }, (by, of) =>
    by('DELETE', `/v1/messages/${of.messageId}/reactions/x`),
  ),
  row('reactions.list', inside, (by, of) => by('GET', `/v1/messages/${of.messageId}/reactions`)),
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
  'sync',
];

test('members#moderators: the table has every operation of conversations, members, messages, files and calls', () => {
  const tags = ['Conversations', 'Members', 'Read state', 'Messages', 'Sync and events', 'Reactions', 'Calls'];
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
          const { by, of } = await ask(who);
          const answer = await call(by, of);
          return [who, answer.status < 300 ? 'yes' : answer.body.error.code];
        }),
      );
      assert.deepEqual(Object.fromEntries(outcomes), may);
    });
});

test('members#moderators: over the socket a moderator deletes the messages of others and edits only its own', async () => {
  const { of } = await ask('moderator');
  const socket = await scene.online(of.self);
  await socket.refused('message.update', { id: of.messageId, text: 'y', expectedVersion: 1 }, 'forbidden');
  await socket.request('message.delete', { id: of.messageId });
  const { d } = await socket.event('message.deleted', of.cid);
  assert.equal(d.id, of.messageId);
});

test('members#role: owners make moderators where the environment says so, and touch no owner', async () => {
  const { of } = await ask('owner');
  const set = (by: Api, userId: string, role: string) =>
    by('PATCH', `${conversation(of)}/members/${userId}`, { role });
  assertError(await set(of.self.api, of.member.id, 'moderator'), 403, 'forbidden');
  await parley(service, 'env', 'set', environments.dev.id, '--owners-set-roles', 'true');
  try {
    const { status, body } = await set(of.self.api, of.member.id, 'moderator');
    assert.equal(status, 200);
    assert.equal(body.role, 'moderator');
    const event = (await scene.events(of.cid)).at(-1)!;
    assert.deepEqual(
      { type: event.type, userId: event.userId, role: event.role, actorId: event.actorId },
      { type: 'member.updated', userId: of.member.id, role: 'moderator', actorId: of.self.id },
    );
    assertError(await set(of.self.api, of.member.id, 'owner'), 403, 'forbidden', 'role');
    assertError(await set(of.moderator.api, of.member.id, 'member'), 403, 'forbidden');
    assertError(await set(of.moderator.api, of.moderator.id, 'owner'), 403, 'forbidden');
    assertError(await set(of.other.api, of.member.id, 'member'), 403, 'not_member');
    assertError(await set(of.self.api, of.self.id, 'member'), 403, 'forbidden');
    assertError(await set(of.self.api, of.other.id, 'member'), 404, 'not_found');
    assert.equal((await set(of.self.api, of.moderator.id, 'member')).status, 200);
    assertError(await of.moderator.api('DELETE', `/v1/messages/${of.messageId}`), 403, 'forbidden');
  } finally {
    await parley(service, 'env', 'set', environments.dev.id, '--owners-set-roles', 'false');
  }
});
