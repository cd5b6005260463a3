import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { saveCredentials } from '../../src/features/push/sql/credentials.ts';
import { createLostSockets, lookBack } from '../../src/features/push/lost.ts';
import { addFault } from '../../src/features/storage/sql/faults.ts';
import { readBatch } from '../../src/features/storage/copy.ts';
import { recordsOf } from '../../src/features/storage/records.ts';
import { coldSlots } from '../../src/features/storage/sql.ts';
import { resumeErasures } from '../../src/features/erasure/operations.ts';
import { usersByNumber as presentUsers } from '../../src/features/presence/sql.ts';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { findEnvironment } from '../../src/features/tenancy/sql/environments.ts';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import type { InProcess } from '../cluster/in-process.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import { signedInOwner } from '../accounts/dashboard.ts';
import { parley } from '../support/cli.ts';
import { createScene } from '../support/scene.ts';
import type { Actor, Scene } from '../support/scene.ts';
import { complete, picture, program, ready, transfer } from '../uploads/files.ts';
import { startReceiver, status } from '../webhooks/receiver.ts';
import { addEndpoint, delivery } from '../webhooks/tools.ts';

const ok = async (answer: Promise<{ status: number; body: any }>): Promise<any> => {
  const { status: code, body } = await answer;
  assert.ok(code < 300, `${code} ${JSON.stringify(body)}`);
  return body;
};

/** A user who waits, as the SDK does, when it asks faster than one user may. */
const patient = ({ id, api }: Actor): Actor => ({
  id,
  api: async (...request) => {
    for (;;) {
      const answer = await api(...request);
      if (answer.status !== 429) return answer;
      await delay(answer.body.error.retryAfterMs as number);
    }
  },
});

/** Makes the service run what it has: every operation, sockets, webhooks, pushes and what it does by itself. */
export async function exercise(node: InProcess, db: PgDb, settings: Record<string, string>): Promise<void> {
  const scene = createScene(node.url);
  const { server } = scene;
  const [receiver, failing] = await Promise.all([startReceiver(), startReceiver()]);
  const vendor = await startWebpush(Date.now);
  try {
    const env = (await findEnvironment(db, 'env_dev'))!;
    await db.tx((tx) => saveCredentials(tx, node.services.vault, env.no, 'webpush', vendor.credentials));
    failing.answer = status(500);
    const events = ['message.created', 'message.read', 'message.updated', 'message.deleted', 'user.deleted'];
    const endpoint = await addEndpoint(server, receiver.url, events);
    const broken = await addEndpoint(server, failing.url, ['message.created']);

    const [a, b, c] = (await Promise.all(
      ['a', 'b', 'c'].map(async (name) => patient(await scene.actor(name))),
    )) as [Actor, Actor, Actor];
    const { id } = await scene.group(a, [b, c], { name: 'group' });
    const path = `/v1/conversations/${id}`;

    // Sockets.
    const [sa, sb] = [await scene.online(a), await scene.online(b)];
    await sa.request('presence.watch', { userIds: [b.id, c.id] });
    const { seq } = await sa.request('message.send', { cid: id, clientMsgId: 'one', text: 'one' });
    sb.send('delivered', { items: [{ cid: id, seq }] });
    await sa.ephemeral('receipt', (d) => d.lastDeliveredSeq === seq);
    await sb.request('read', { cid: id, seq });
    await ok(server('POST', '/v1/conversations', { type: 'group', members: [a.id, c.id] }));

    // Messages: alone, together, again, with files, changed, deleted.
    const device = { provider: 'webpush', token: vendor.tokenOf(c.id) };
    await ok(c.api('POST', '/v1/push/devices', device));
    const first = await scene.send(a, id, { text: 'first' });
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        server('POST', `${path}/messages`, { text: `${i}`, senderId: b.id, clientMsgId: `many ${i % 50}` }),
      ),
    );
    const reply = await scene.send(b, id, { text: 'reply', replyTo: first.id });
    for (const one of [first, reply])
      for (const { api } of [a, b, c]) {
        await ok(api('PUT', `/v1/messages/${one.id}/reactions/%F0%9F%91%8D`, {}));
        await ok(api('PUT', `/v1/messages/${one.id}/reactions/:party:`, { replace: true }));
      }
    await ok(a.api('DELETE', `/v1/messages/${reply.id}/reactions/:party:`));
    const reactors = await ok(a.api('GET', `/v1/messages/${reply.id}/reactions?limit=1`));
    await ok(a.api('GET', `/v1/messages/${reply.id}/reactions?limit=1&cursor=${reactors.nextCursor}`));
    for (const one of [first, reply]) await ok(a.api('PUT', `/v1/messages/${one.id}/pin`));
    await ok(a.api('PUT', `/v1/messages/${reply.id}/pin`));
    await ok(a.api('GET', `/v1/conversations/${id}/pins`));
    await ok(a.api('DELETE', `/v1/messages/${reply.id}/pin`));
    const options = [{ text: 'yes' }, { text: 'no' }];
    const poll = { question: 'Which?', options, closesAt: '2090-01-01' };
    const asked = await scene.send(a, id, { poll });
    for (const { api } of [b, c]) await ok(api('PUT', `/v1/messages/${asked.id}/votes`, { options: [2] }));
    await ok(a.api('POST', `/v1/messages/${asked.id}/poll/close`));
    // Mentions.
    const toB = { type: 'user', userId: b.id };
    for (const mentions of [[toB], [toB], [{ type: 'everyone' }]])
      await scene.send(a, id, { text: 'you', mentions });
    const toC = { expectedVersion: 1, mentions: [{ type: 'user', userId: c.id }] };
    await ok(b.api('PATCH', `/v1/messages/${reply.id}`, toC));
    const named = await ok(b.api('GET', '/v1/mentions?limit=1'));
    await ok(b.api('GET', `/v1/mentions?limit=1&cursor=${named.nextCursor}`));
    await ok(c.api('GET', `/v1/mentions?conversationId=${id}`));
    for (const level of ['mentions', 'none']) await ok(c.api('PUT', `${path}/notifications`, { level }));
    const file = await ready(a.api, id, picture);
    await scene.send(a, id, { attachments: [file] });
    await ok(a.api('GET', `/v1/attachments/${file}/url`));
    const bad = await transfer(a.api, id, { ...picture, body: program });
    assert.equal((await complete(a.api, bad)).status, 400);
    await ok(b.api('PATCH', `/v1/messages/${reply.id}`, { text: 'edited', expectedVersion: 2 }));
    await ok(b.api('DELETE', `/v1/messages/${reply.id}`));
    await ok(b.api('DELETE', `/v1/messages/${reply.id}`));
    await ok(server('DELETE', `/v1/messages/${first.id}?hard=true`));
    for (const query of ['limit=5', 'before=20&limit=5', 'after=3&limit=5'])
      await ok(b.api('GET', `${path}/messages?${query}`));
    await ok(b.api('GET', `${path}/events?after=0`));
    const { cursor } = await ok(b.api('POST', '/v1/sync', { cursor: null }));
    await ok(b.api('POST', '/v1/sync', { cursor }));
    await ok(b.api('POST', `${path}/read`, { seq: 10 }));

    // Conversations and members.
    const d = await scene.actor('d');
    await ok(a.api('POST', `${path}/members`, { userIds: [d.id] }));
    await ok(server('PATCH', `${path}/members/${d.id}`, { role: 'owner' }));
    const page = await ok(a.api('GET', `${path}/members?limit=1`));
    await ok(a.api('GET', `${path}/members?limit=1&cursor=${page.nextCursor}`));
    await ok(a.api('DELETE', `${path}/members/${d.id}`));
    await ok(a.api('PATCH', path, { name: 'renamed' }));
    await ok(a.api('GET', path));
    await ok(a.api('PUT', `${path}/mute`));
    await ok(a.api('DELETE', `${path}/mute`));
    const list = await ok(a.api('GET', '/v1/conversations?limit=1'));
    await ok(a.api('GET', `/v1/conversations?limit=1&cursor=${list.nextCursor}`));
    await ok(a.api('POST', '/v1/conversations', { type: 'group', members: [b.id] }));
    const direct = await scene.direct(a, b);
    await ok(server('DELETE', `/v1/conversations/${direct.id}`));
    await ok(a.api('POST', '/v1/conversations', { type: 'direct', members: [b.id] }));

    await askModeration(scene, { a, b, c, id });
    await askJoining(scene, { a, b, c, id });

    // Users.
    const users = await ok(server('GET', '/v1/users?limit=1'));
    await ok(server('GET', `/v1/users?limit=1&cursor=${users.nextCursor}`));
    await ok(a.api('GET', `/v1/users/${b.id}`));
    await ok(a.api('POST', '/v1/users/lookup', { userIds: [b.id, c.id] }));
    await ok(server('GET', '/v1/users?prefix=b'));
    await ok(server('GET', '/v1/users?namePrefix=b'));
    const keyed = { 'idempotency-key': randomUUID() };
    for (let i = 0; i < 2; i++) await ok(server('POST', '/v1/tokens', { userId: 'made' }, keyed));
    for (const action of ['deactivate', 'reactivate', 'revoke-tokens'])
      await ok(server('POST', `/v1/users/${d.id}/${action}`));
    await ok(c.api('DELETE', `/v1/push/devices/${encodeURIComponent(device.token)}`));

    // Webhooks and pushes have left; then everything else that endpoints can be asked.
    await delivery(server, broken.id, (one) => one.attempts.length > 0);
    await receiver.wait(10);
    await ok(server('GET', '/v1/webhooks'));
    await ok(server('PATCH', `/v1/webhooks/${endpoint.id}`, { description: 'mine' }));
    await ok(server('POST', `/v1/webhooks/${endpoint.id}/rotate-secret`));
    await ok(server('POST', `/v1/webhooks/${endpoint.id}/test`));
    const log = await ok(server('GET', `/v1/webhooks/${endpoint.id}/deliveries?limit=1`));
    await ok(server('GET', `/v1/webhooks/${endpoint.id}/deliveries?limit=1&cursor=${log.nextCursor}`));
    const replay = `/v1/webhooks/${endpoint.id}/deliveries/${log.data[0].id}/replay`;
    await ok(server('POST', replay));
    failing.answer = status(410);
    await scene.send(null, id, { text: 'to the one that is gone' });
    await delivery(server, broken.id, (one) => one.status === 'failed');
    await ok(server('DELETE', `/v1/webhooks/${broken.id}`));

    await askCalls(scene, a, b, id);
    await askDashboard(node.url, { user: b.id, message: reply.id, cid: id, webhook: endpoint.id });

    // What ends.
    await ok(server('DELETE', `/v1/users/${b.id}?messages=delete`));
    await ok(server('DELETE', `/v1/users/${d.id}`));
    for (const socket of [sa, sb]) if (socket.ws.readyState === 1) await socket.close();
    await removeExpired(db, 3_600_000);
    await db.query(
      `UPDATE users SET erasing = 'anonymize', erased_at = now() - interval '1 hour' WHERE env = $1 AND id = $2`,
      [env.no, c.id],
    );
    await resumeErasures({ db, services: node.services });
    await presentUsers(db, [{ env: env.no, user: 1 }]);

    // What the sinks of customers' databases read of our store, and who is looked for after a socket died.
    await addFault(db, env.no, 'a');
    await coldSlots(db, env.no);
    const copy = {
      kind: 'fill',
      conv: 0,
      seq: 0,
      done: 0,
      total: 0,
      startedAt: new Date().toISOString(),
    } as const;
    await readBatch({ db, env: env.no, size: 100, ahead: [] } as never, copy);
    const [conv] = await db.query<{ no: number }>('SELECT no FROM conversations WHERE id = $1', [id]);
    await recordsOf(db, env.no, [{ no: 1, conv: conv!.no, seq: 1, message: null, at: copy.startedAt }]);
    await createLostSockets(db, () => undefined).add({ env: env.no, user: 1, silentMs: 60_000 });
    const nobody = { connected: (users: readonly object[]) => Promise.resolve(users.map(() => false)) };
    const lost = { key: env.no, ref: 1, data: { since: copy.startedAt } };
    await lookBack(db, nobody as never, [lost as never], Date.now());

    // The command line.
    const line = (...args: string[]) => parley({ env: settings }, ...args);
    await line('env', 'create', '--name', 'new', '--kind', 'development', '--organization', 'org_plans');
    const { secretKey } = await line('key', 'create', 'env_dev');
    await Promise.all([
      line('env', 'list'),
      line('env', 'set', 'env_dev', '--name', 'renamed'),
      line('key', 'list', 'env_dev'),
      line('key', 'revoke', 'env_dev', secretKey.split('_')[2]),
      line('push', 'list', 'env_dev'),
      line('audit', 'list', 'env_dev', '--action', 'keys.create'),
      line('storage', 'list'),
    ]);
  } finally {
    await Promise.all([receiver.close(), failing.close()]);
    await vendor.close();
  }
}

/** Blocks, bans, silences, slow mode and word lists. */
async function askModeration(
  { server, online }: Scene,
  { a, b, c, id }: { a: Actor; b: Actor; c: Actor; id: string },
): Promise<void> {
  for (const user of [b, c]) await ok(a.api('PUT', `/v1/blocks/${user.id}`));
  const blocks = await ok(a.api('GET', '/v1/blocks?limit=1'));
  await ok(a.api('GET', `/v1/blocks?limit=1&cursor=${blocks.nextCursor}`));
  for (const user of [b, c]) await ok(a.api('DELETE', `/v1/blocks/${user.id}`));
  const path = `/v1/conversations/${id}`;
  for (const user of [b, c]) await ok(a.api('PUT', `${path}/restrictions/${user.id}`, { kind: 'silence' }));
  const restrictions = await ok(a.api('GET', `${path}/restrictions?limit=1`));
  await ok(a.api('GET', `${path}/restrictions?limit=1&cursor=${restrictions.nextCursor}`));
  for (const user of [b, c]) await ok(a.api('DELETE', `${path}/restrictions/${user.id}`));
  await ok(server('PUT', `/v1/users/${b.id}/silence`, {}));
  await ok(server('DELETE', `/v1/users/${b.id}/silence`));
  for (const slowModeSeconds of [60, 0]) await ok(a.api('PATCH', path, { rules: { slowModeSeconds } }));
  const [owner, member] = [await online(a), await online(b)];
  await ok(a.api('PATCH', path, { rules: { posting: 'moderators' } }));
  await owner.event('conversation.updated', id);
  owner.send('typing', { cid: id, state: 'start' });
  await member.ephemeral('typing', (d) => d.userId === a.id);
  await ok(a.api('PATCH', path, { rules: { posting: 'all' } }));
  await Promise.all([owner.close(), member.close()]);
  const list = { entries: ['gold'], action: 'mask', conversations: 'all' };
  await ok(server('PUT', '/v1/moderation/lists/words', list));
  await ok(server('PUT', '/v1/moderation/lists/other', { ...list, entries: ['silver'], action: 'report' }));
  await ok(server('GET', '/v1/moderation/lists'));
  await ok(server('GET', '/v1/moderation/lists/words'));
  await ok(b.api('POST', `${path}/messages`, { text: 'gold and silver', clientMsgId: 'masked' }));
  for (const name of ['words', 'other']) await ok(server('DELETE', `/v1/moderation/lists/${name}`));
  const hook = '/v1/hooks/before-send';
  await ok(server('PUT', hook, { url: 'http://127.0.0.1:9/' }));
  const sent = await ok(b.api('POST', `${path}/messages`, { text: 'asked about', clientMsgId: 'asked' }));
  await ok(b.api('PATCH', `/v1/messages/${sent.id}`, { text: 'asked again', expectedVersion: 1 }));
  for (const read of ['/v1/hooks', hook, `${hook}/stats`]) await ok(server('GET', read));
  for (const change of ['test', 'rotate-secret']) await ok(server('POST', `${hook}/${change}`));
  await ok(server('DELETE', hook));
  const { data } = await ok(server('GET', `${path}/messages?limit=2`));
  const reported = data.map((m: { id: string }) => ({ messageId: m.id, reason: 'spam' }));
  for (const body of [...reported, { userId: b.id, reason: 'abuse' }])
    for (const by of [a.api, server]) await ok(by('POST', '/v1/reports', body));
  const reports = await ok(server('GET', '/v1/reports?limit=1'));
  await ok(server('GET', `/v1/reports?limit=1&cursor=${reports.nextCursor}&status=open`));
  await ok(server('GET', `/v1/reports?targetUserId=${b.id}&conversationId=${id}`));
  await ok(server('GET', `/v1/users/${b.id}/restrictions`));
  const decision = { status: 'resolved', actions: ['delete_message'] };
  await ok(
    server('PATCH', `/v1/reports/${(await ok(server('POST', '/v1/reports', reported[0]))).id}`, decision),
  );
}

/** Rules, listed groups and links. */
async function askJoining(
  { server }: Scene,
  { a, b, c, id }: { a: Actor; b: Actor; c: Actor; id: string },
): Promise<void> {
  const path = `/v1/conversations/${id}`;
  const leave = (user: Actor) => ok(server('DELETE', `${path}/members/${user.id}`));
  await ok(a.api('PATCH', path, { name: 'Open house', rules: { joining: 'open', listed: true } }));
  await leave(b);
  await ok(b.api('GET', `${path}/preview`));
  for (const query of ['limit=1', 'q=house', 'q=open+ho']) {
    const { nextCursor } = await ok(b.api('GET', `/v1/conversations/public?${query}`));
    if (nextCursor) await ok(b.api('GET', `/v1/conversations/public?${query}&cursor=${nextCursor}`));
  }
  await ok(b.api('POST', `${path}/join`));
  const link = await ok(a.api('POST', `${path}/invites`));
  await ok(a.api('GET', `${path}/invites`));
  await leave(c);
  await ok(c.api('GET', `/v1/invites/${link.token}`));
  await ok(c.api('POST', `/v1/invites/${link.token}`));
  await ok(a.api('DELETE', `${path}/invites/${link.id}`));
  await ok(a.api('PATCH', path, { rules: { joining: 'closed', listed: false } }));
}

/** Calls, as far as they come without a media node; what is refused has been looked up too. */
async function askCalls({ server }: Scene, a: Actor, b: Actor, cid: string): Promise<void> {
  const { body: call } = await a.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' });
  for (const query of [
    '',
    `?conversationId=${cid}`,
    '?live=true',
    '?live=false&limit=1',
    `?userId=${b.id}`,
  ]) {
    await server('GET', `/v1/calls${query}`);
    if (!query.includes('userId')) await a.api('GET', `/v1/calls${query}`);
  }
  const path = `/v1/calls/${call.id}`;
  await b.api('GET', path);
  await b.api('POST', `${path}/join`);
  await b.api('POST', `${path}/decline`);
  await server('POST', `${path}/participants/${b.id}/mute`, { source: 'audio' });
  await server('POST', `${path}/participants/${b.id}/remove`);
  await a.api('POST', `${path}/leave`);
  await server('POST', `${path}/end`);
}

/** What people look at who run an environment. */
async function askDashboard(
  url: string,
  of: { user: string; message: string; cid: string; webhook: string },
): Promise<void> {
  const dashboard = (await signedInOwner(url)).in('env_dev');
  for (const path of [
    '/v1/overview',
    '/v1/explorer/conversations',
    '/v1/explorer/conversations?query=a',
    `/v1/explorer/conversations?userId=${of.user}`,
    '/v1/live/nodes',
    '/v1/live/sockets',
    `/v1/live/sockets?userId=${of.user}&limit=1`,
    ...['', '&status=200', '&status=4xx', `&userId=${of.user}`, '&operation=sync', '&requestId=req_1'].map(
      (more) => `/v1/logs?limit=1${more}`,
    ),
    ...['', '?live=true', '?live=false'].map((more) => `/v1/users/${of.user}/sessions${more}`),
    `/v1/users/${of.user}/devices`,
    '/v1/keys',
    '/v1/audit',
    '/v1/storage',
    '/v1/organizations',
    `/v1/conversations?userId=${of.user}`,
    `/v1/conversations/${of.cid}/messages`,
    '/v1/calls',
    '/v1/analytics',
    '/v1/analytics?granularity=hour&format=csv',
    '/v1/usage',
    `/v1/diagnostics/delivery?messageId=${of.message}&userId=${of.user}`,
  ])
    await dashboard('GET', path);
  await dashboard('POST', `/v1/webhooks/${of.webhook}/replay-failed`, {
    since: new Date(Date.now() - 3_600_000).toISOString(),
  });
}
