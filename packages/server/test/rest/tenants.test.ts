import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { operationList } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { pretendNode } from '../calls/tools.ts';
import { assertError, createApi } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor, Scene } from '../support/scene.ts';
import { signToken } from '../support/tokens.ts';
import { setUp, useService } from '../support/use.ts';

/** api#tenants: ids of another tenant answer as unknown ids do, and nothing of that tenant changes. */

const { service, db } = useService();
let own: Scene;
let foreign: Scene;
let webhookId: string;
setUp(async () => {
  await pretendNode(db);
  own = createScene(service.url, 'dev');
  foreign = createScene(service.url, 'other');
  const endpoint = { url: 'https://hooks.example.com/x', events: ['sink.failing'] };
  webhookId = (await create('/v1/webhooks', endpoint)).id;
  const words = { entries: ['theirs-alone'], action: 'reject', conversations: 'all' };
  assert.equal((await foreign.server('PUT', '/v1/moderation/lists/theirs', words)).status, 200);
  // Messages of groups, which the tests send, never reach it.
  const hook = { url: 'https://hooks.example.com/x', types: 'direct' };
  assert.equal((await foreign.server('PUT', '/v1/hooks/before-send', hook)).status, 200);
});

interface Ids {
  userId: string;
  conversationId: string;
  messageId: string;
  attachmentId: string;
  webhookId: string;
  deliveryId: string;
  callId: string;
  /** Of a push device, and of an invite link. */
  token: string;
  reportId: string;
  inviteId: string;
  /** Of a word list. */
  name: string;
  /** Belong to nobody. */
  emoji: string;
  kind: string;
}

interface Victim {
  ids: Ids;
  user: Actor;
  snapshot(): Promise<unknown>;
  /** What only its own client can tell; a user's requests are limited. */
  clientSnapshot(): Promise<unknown>;
}

const upload = (conversationId: string) => ({
  conversationId,
  filename: 'a.png',
  size: 10,
  contentType: 'image/png',
});

async function create(path: string, body: unknown): Promise<Answer['body']> {
  const answer = await foreign.server('POST', path, body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}

/** Everything that the other tenant has and an id can name. */
async function createVictim(): Promise<Victim> {
  const { server } = foreign;
  const user = await foreign.actor('victim');
  const { id } = await foreign.group(user, [await foreign.actor('peer')]);
  const message = await foreign.send(user, id, { text: 'theirs' });
  const ticket = await create('/v1/uploads', upload(id));
  await server('PATCH', `/v1/conversations/${id}`, { rules: { joining: 'open', listed: true } });
  const link = await create(`/v1/conversations/${id}/invites`, {});
  const ids: Ids = {
    userId: user.id,
    conversationId: id,
    messageId: message.id,
    attachmentId: ticket.attachmentId,
    webhookId,
    deliveryId: 'whd_00000000000000000000000000',
    callId: (await create('/v1/calls', { conversationId: id, kind: 'audio', callerId: user.id })).id,
    reportId: (await create('/v1/reports', { messageId: message.id, reason: 'spam' })).id,
    token: link.token,
    inviteId: link.id,
    name: 'theirs',
    emoji: ':any:',
    kind: 'before-send',
  };
  assert.equal(
    (await user.api('POST', '/v1/push/devices', { provider: 'fcm', token: ids.token })).status,
    201,
  );
  const paths = [
    `/v1/users/${user.id}`,
    `/v1/conversations?userId=${user.id}`,
    `/v1/conversations/${id}`,
    `/v1/conversations/${id}/members`,
    `/v1/conversations/${id}/messages`,
    `/v1/conversations/${id}/events`,
    `/v1/conversations/${id}/invites`,
    `/v1/webhooks/${webhookId}`,
    '/v1/moderation/lists/theirs',
    `/v1/reports?conversationId=${id}`,
    '/v1/hooks/before-send',
    `/v1/calls?conversationId=${id}`,
  ];
  return {
    ids,
    user,
    async snapshot() {
      const answers = await Promise.all(paths.map((path) => server('GET', path)));
      return answers.map(({ status, body }) => [status, body]);
    },
    async clientSnapshot() {
      const list = await user.api('GET', '/v1/conversations');
      const device = await user.api('POST', '/v1/push/devices', { provider: 'fcm', token: ids.token });
      return [list.status, list.body, device.status];
    },
  };
}

const nobody = (): Ids => {
  const ulid = () => `0${randomUUID().replaceAll('-', '').slice(0, 25)}`;
  return {
    userId: `nobody-${randomUUID()}`,
    conversationId: `conv_${ulid()}`,
    messageId: `msg_${ulid()}`,
    attachmentId: `att_${ulid()}`,
    webhookId: `wh_${ulid()}`,
    deliveryId: `whd_${ulid()}`,
    callId: `call_${ulid()}`,
    token: `device-${randomUUID()}`,
    reportId: `rep_${ulid()}`,
    inviteId: `lnk_${ulid()}`,
    name: 'nobodys',
    emoji: ':any:',
    kind: 'before-send',
  };
};

/** Bodies and queries that hold ids, or that the operation needs to come as far as looking one up. */
const samples: Record<string, (ids: Ids) => { body?: unknown; query?: string }> = {
  'tokens.create': ({ userId }) => ({ body: { userId } }),
  'users.upsert': () => ({ body: { name: 'mine' } }),
  'users.erase': () => ({ query: '?messages=delete' }),
  'conversations.create': ({ userId }) => ({ body: { type: 'group', members: [userId] } }),
  'conversations.list': ({ userId }) => ({ query: `?userId=${userId}` }),
  'conversations.update': () => ({ body: { name: 'mine' } }),
  'conversations.read': () => ({ body: { seq: 1 } }),
  'members.add': ({ userId }) => ({ body: { userIds: [userId] } }),
  'members.update': () => ({ body: { role: 'owner' } }),
  'messages.send': () => ({ body: { text: 'mine', clientMsgId: 'c' } }),
  'messages.update': () => ({ body: { text: 'mine', expectedVersion: 1 } }),
  'conversations.setLevel': () => ({ body: { level: 'all' } }),
  'blocks.add': () => ({ body: {} }),
  'restrictions.set': () => ({ body: { kind: 'silence' } }),
  'invites.create': () => ({ body: {} }),
  'users.silence': () => ({ body: {} }),
  'reports.create': ({ messageId }) => ({ body: { messageId, reason: 'spam' } }),
  'reports.list': ({ userId, conversationId }) => ({
    query: `?targetUserId=${userId}&conversationId=${conversationId}`,
  }),
  'reports.update': () => ({ body: { status: 'resolved', actions: ['delete_message', 'silence'] } }),
  // Refused, so that there is no list of this name here when it is read.
  'wordLists.set': () => ({ body: { entries: ['*'], action: 'reject', conversations: 'all' } }),
  // Refused, for the same reason.
  'hooks.set': () => ({ body: { url: 'nowhere' } }),
  'reactions.set': ({ userId }) => ({ body: { userId } }),
  'reactions.remove': ({ userId }) => ({ query: `?userId=${userId}` }),
  'polls.vote': () => ({ body: { options: [1] } }),
  sync: () => ({ body: { cursor: null } }),
  'webhooks.update': () => ({ body: { description: 'mine' } }),
  'calls.start': ({ conversationId }) => ({ body: { conversationId, kind: 'audio' } }),
  'calls.list': ({ conversationId }) => ({ query: `?conversationId=${conversationId}` }),
  'calls.mute': () => ({ body: { source: 'mic' } }),
  'webhooks.replayFailed': () => ({ body: { since: '2026-01-01' } }),
  'push.register': ({ token }) => ({ body: { provider: 'fcm', token } }),
  'uploads.create': ({ conversationId }) => ({ body: upload(conversationId) }),
};

/** An answer without what differs between any two requests. */
function normal(answer: Answer, ids: Ids): string {
  let text = JSON.stringify([answer.status, answer.body]);
  for (const [name, id] of Object.entries(ids)) text = text.replaceAll(id, `<${name}>`);
  return text
    .replaceAll(/"(req|conv)_[0-9a-z]{26}"/g, '"<$1>"')
    .replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"<time>"')
    .replaceAll(/"s2(\.[0-9a-z]+)+"/g, '"<cursor>"')
    .replaceAll(/"[\w-]+\.[\w-]+\.[\w-]+"/g, '"<token>"')
    .replaceAll(/me-[0-9a-f-]{36}/g, '<me>');
}

function call(by: Api, operation: Operation, ids: Ids): Promise<Answer> {
  const { body, query = '' } = samples[operation.name]?.(ids) ?? {};
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name as keyof Ids];
    assert.ok(id, `say above how to make a foreign ${name}`);
    return id;
  });
  return by(operation.method, path + query, body);
}

let shared: Promise<Victim> | undefined;
const ours = /\{(conversationId|messageId|attachmentId|webhookId|callId|reportId)\}/;

describe('api#tenants: every operation with ids of another tenant', () => {
  for (const operation of operationList)
    for (const kind of ['server', 'client'] as const) {
      if (!operation.callers.includes(kind)) continue;
      const holdsIds = operation.path.includes('{') || operation.name in samples;
      if (!holdsIds) continue;
      it(`${operation.name}, as a ${kind}`, async () => {
        const unknown = nobody();
        // Ids that callers choose may be in use on both sides after one call: such operations get new ones.
        const chosen = JSON.stringify([operation.path, samples[operation.name]?.(unknown)]).match(
          `{userId}|{token}|${unknown.userId}|${unknown.token}`,
        );
        const victim = chosen ? await createVictim() : await (shared ??= createVictim());
        const state = async () => [await victim.snapshot(), chosen && (await victim.clientSnapshot())];
        const as = async () => (kind === 'server' ? own.server : (await own.actor('me')).api);
        const before = await state();
        const answer = await call(await as(), operation, victim.ids);
        assert.equal(normal(answer, victim.ids), normal(await call(await as(), operation, unknown), unknown));
        if (ours.test(operation.path)) assertError(answer, 404, 'not_found');
        assert.deepEqual(await state(), before);
      });
    }
});

describe('api#tenants: ids of another tenant inside requests about own things', () => {
  it('replyTo, senderId, attachments and userIds: the same refusal as for unknown ids', async () => {
    const [victim, unknown] = [await createVictim(), nobody()];
    const me = await own.actor('me');
    const { id } = await own.group(me, []);
    const before = await victim.snapshot();
    const attempts: ((ids: Ids) => Promise<Answer>)[] = [
      (ids) => own.server('POST', `/v1/conversations/${id}/messages`, { text: 'x', replyTo: ids.messageId }),
      (ids) => own.server('POST', `/v1/conversations/${id}/messages`, { text: 'x', senderId: ids.userId }),
      (ids) => own.server('POST', `/v1/conversations/${id}/messages`, { attachments: [ids.attachmentId] }),
      (ids) => me.api('POST', `/v1/conversations/${id}/members`, { userIds: [ids.userId] }),
      (ids) => me.api('DELETE', `/v1/conversations/${id}/members/${ids.userId}`),
      (ids) => me.api('POST', '/v1/conversations', { type: 'direct', members: [ids.userId] }),
      (ids) => me.api('GET', `/v1/users/${ids.userId}`),
      ...[own.server, me.api].flatMap((by) => [
        (ids: Ids) => by('POST', '/v1/reports', { userId: ids.userId, reason: 'spam' }),
        (ids: Ids) => by('POST', '/v1/reports', { conversationId: ids.conversationId, reason: 'spam' }),
      ]),
    ];
    for (const attempt of attempts) {
      const answer = await attempt(victim.ids);
      assert.ok(answer.status >= 400);
      assert.equal(normal(answer, victim.ids), normal(await attempt(unknown), unknown));
    }
    assert.deepEqual(await victim.snapshot(), before);
    assert.equal((await own.events(id)).length, 1);
  });

  it('one user id in two environments is two users', async () => {
    const victim = await createVictim();
    const { userId } = victim.ids;
    const state = async () => [await victim.snapshot(), await victim.clientSnapshot()];
    const before = await state();
    await own.server('PUT', `/v1/users/${userId}`, { name: 'ours' });
    const namesake = createApi(service.url, signToken({ sub: userId }));
    assert.deepEqual((await namesake('GET', '/v1/conversations')).body.data, []);
    assertError(await namesake('GET', `/v1/conversations/${victim.ids.conversationId}`), 404, 'not_found');
    for (const action of ['deactivate', 'revoke-tokens'])
      assert.equal((await own.server('POST', `/v1/users/${userId}/${action}`)).status, 200);
    assert.equal((await own.server('DELETE', `/v1/users/${userId}?messages=delete`)).status, 204);
    assert.deepEqual(await state(), before);
  });

  it('a direct conversation of the same two user ids is another one in each environment', async () => {
    const [a, b] = [randomUUID(), randomUUID()];
    const body = { type: 'direct', members: [a, b] };
    const [mine, theirs] = await Promise.all(
      [own, foreign].map((scene) => scene.server('POST', '/v1/conversations', body)),
    );
    assert.deepEqual([mine!.status, theirs!.status], [201, 201]);
    assert.notEqual(mine!.body.id, theirs!.body.id);
    assertError(await own.server('GET', `/v1/conversations/${theirs!.body.id}`), 404, 'not_found');
  });

  it('cursors of another tenant show nothing of it', async () => {
    const victim = await createVictim();
    await foreign.group(victim.user, []);
    const me = await own.actor('me');
    for (const [path, theirApi, myApi] of [
      ['/v1/users?limit=1', foreign.server, own.server],
      ['/v1/conversations?limit=1', victim.user.api, me.api],
    ] as const) {
      const { nextCursor } = (await theirApi('GET', path)).body;
      assert.ok(nextCursor);
      const mine = (await myApi('GET', `${path}&cursor=${nextCursor}`)).body.data;
      const all = (await myApi('GET', path.replace('limit=1', 'limit=200'))).body.data;
      for (const row of mine) assert.partialDeepStrictEqual(all, [row]);
    }
  });

  it('clientMsgId and dedup are per environment', async () => {
    const sent = [];
    for (const scene of [own, foreign]) {
      const actor = await scene.actor('me');
      const { id } = await scene.group(actor, []);
      sent.push(await scene.send(null, id, { text: 'x', clientMsgId: 'same' }));
    }
    assert.notEqual(sent[0].id, sent[1].id);
  });
});
