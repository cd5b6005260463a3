import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { DeliveryDiagnosis, SocketSession } from '@parley/protocol';
import { signedInOwner } from '../accounts/dashboard.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, use, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint, delivery } from '../webhooks/tools.ts';

/** "Why did X not get message Y": one timeline of what is kept. */

const { service, scene, server } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const vendor = use(
  () => startWebpush(() => Date.now()),
  (v) => v.close(),
);
let dashboard: Api;
setUp(async () => {
  dashboard = (await signedInOwner(service.url)).in('env_dev');
  const { provider: _, ...credentials } = vendor.credentials;
  await dashboard('PUT', '/v1/push/credentials/webpush', { credentials });
});

const words = 'Hidden-Words';

/** Once it fits: sockets and pushes are written a moment later. */
async function why(
  message: { id: string },
  user: Actor,
  fits: (d: DeliveryDiagnosis) => boolean = () => true,
): Promise<DeliveryDiagnosis> {
  for (;;) {
    const { status, body } = await dashboard(
      'GET',
      `/v1/diagnostics/delivery?messageId=${message.id}&userId=${user.id}`,
    );
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(!JSON.stringify(body).includes(words), 'no content');
    if (fits(body)) return body;
    await delay(50);
  }
}
const kinds = (d: DeliveryDiagnosis, kind: string) => d.timeline.filter((step) => step.kind === kind);

async function online(actor: Actor) {
  const socket = await scene.online(actor);
  for (;;) {
    const { body } = await dashboard('GET', `/v1/live/sockets?userId=${actor.id}`);
    if (body.data.some((s: SocketSession) => s.id === socket.hello.sessionId)) return socket;
    await delay(50);
  }
}

describe('GET /v1/diagnostics/delivery', () => {
  it('the sender, who was no member, who joined later and who left before', async () => {
    const [ann, bob, eve] = [await scene.actor('ann'), await scene.actor('bob'), await scene.actor('eve')];
    const { id } = await scene.group(ann, [bob]);
    await server('DELETE', `/v1/conversations/${id}/members/${bob.id}`);
    const message = await scene.send(ann, id, { text: words });
    assert.equal((await why(message, ann)).verdict, 'own_message');
    const left = await why(message, bob);
    assert.deepEqual([left.verdict, left.member.was, left.member.is], ['not_member', false, false]);
    assert.deepEqual(
      kinds(left, 'member').map((s) => s.title),
      ['The user is a member from the beginning', 'The user was removed, or left'],
    );
    assert.equal((await why(message, eve)).verdict, 'not_member');
    await server('POST', `/v1/conversations/${id}/members`, { userIds: [eve.id] });
    const joined = await why(message, eve);
    assert.deepEqual([joined.verdict, joined.member.was, joined.member.is], ['not_member', false, true]);
    await server('DELETE', `/v1/conversations/${id}/members/${ann.id}`);
    assert.equal((await why(message, ann)).member.was, true, 'who left afterwards was there');
  });

  it('who had a socket: sent, then delivered, then read', async () => {
    const [ann, bob] = [await scene.actor('ann'), await scene.actor('bob')];
    const { id } = await scene.group(ann, [bob]);
    const socket = await online(bob);
    const message = await scene.send(ann, id, { text: words });
    await socket.next((f) => f.e === 'message.new');
    const sent = await why(message, bob);
    assert.equal(sent.verdict, 'sent_to_socket');
    assert.deepEqual(
      kinds(sent, 'socket').map((s) => s.detail['sessionId']),
      [socket.hello.sessionId],
    );
    assert.deepEqual([kinds(sent, 'fanout')[0]!.ok, kinds(sent, 'delivered')[0]!.ok], [true, false]);
    socket.send('delivered', { items: [{ cid: id, seq: message.seq }] });
    const delivered = await why(message, bob, (d) => d.verdict !== 'sent_to_socket');
    assert.deepEqual([delivered.verdict, kinds(delivered, 'read')[0]!.ok], ['delivered', false]);
    await socket.request('read', { cid: id, seq: message.seq });
    assert.equal((await why(message, bob)).verdict, 'read');
    await socket.close();
  });

  it('who had none: offline, and why there was no push; then who came later', async () => {
    const [ann, bob] = [await scene.actor('ann'), await scene.actor('bob')];
    const { id } = await scene.group(ann, [bob]);
    const message = await scene.send(ann, id, { text: words });
    const offline = await why(message, bob);
    assert.equal(offline.verdict, 'offline');
    assert.match(kinds(offline, 'push')[0]!.title, /no device/);
    assert.equal(kinds(offline, 'fanout')[0]!.ok, false);
    const socket = await online(bob);
    const later = await why(message, bob);
    assert.equal(later.verdict, 'connected_since');
    assert.equal(kinds(later, 'socket')[0]!.detail['sessionId'], socket.hello.sessionId);
    await socket.close();
    await server('POST', `/v1/users/${bob.id}/deactivate`);
    const next = await scene.send(ann, id, { text: words });
    assert.equal((await why(next, bob)).verdict, 'deactivated');
  });

  it('pushes: accepted, and failed', async () => {
    const [ann, bob, eve] = [await scene.actor('ann'), await scene.actor('bob'), await scene.actor('eve')];
    const { id } = await scene.group(ann, [bob, eve]);
    await bob.api('POST', '/v1/push/devices', { provider: 'webpush', token: vendor.tokenOf(bob.id) });
    await eve.api('POST', '/v1/push/devices', { provider: 'webpush', token: vendor.deadToken });
    const message = await scene.send(ann, id, { text: words });
    const pushed = await why(message, bob, (d) => d.verdict !== 'offline');
    assert.deepEqual([pushed.verdict, kinds(pushed, 'push')[0]!.detail['provider']], ['pushed', 'webpush']);
    const failed = await why(message, eve, (d) => d.verdict !== 'offline');
    assert.deepEqual([failed.verdict, kinds(failed, 'push')[0]!.detail['result']], ['push_failed', 'dead']);
  });

  it('webhooks, edits and deletions are on it, in the order of their time', async (t) => {
    const receiver = await startReceiver();
    t.after(() => receiver.close());
    const { id: webhookId } = await addEndpoint(server, receiver.url, ['message.created']);
    const [ann, bob] = [await scene.actor('ann'), await scene.actor('bob')];
    const { id } = await scene.group(ann, [bob]);
    const message = await scene.send(ann, id, { text: words });
    const told = await delivery(server, webhookId, (d) => d.status === 'succeeded');
    await ann.api('PATCH', `/v1/messages/${message.id}`, { text: 'other', expectedVersion: 1 });
    await ann.api('DELETE', `/v1/messages/${message.id}`);
    const diagnosis = await why(message, bob);
    const [hook] = kinds(diagnosis, 'webhook');
    assert.deepEqual([hook!.ok, hook!.detail['deliveryId']], [true, told.id]);
    const times = diagnosis.timeline.flatMap((s) => s.at ?? []);
    assert.deepEqual(times, [...times].sort());
    assert.ok(
      diagnosis.timeline.slice(times.length).every((s) => s.at === null),
      'steps without a time come last',
    );
    assert.deepEqual(
      ['committed', 'edited', 'deleted'].map((kind) => kinds(diagnosis, kind).length),
      [1, 1, 1],
    );
    await server('DELETE', `/v1/webhooks/${webhookId}`);
  });

  it('unknown messages and users are not found, also those of other environments', async () => {
    const ann = await scene.actor('ann');
    const { id } = await scene.group(ann, []);
    const message = await scene.send(ann, id, { text: words });
    const ask = (api: Api, messageId: string, userId: string) =>
      api('GET', `/v1/diagnostics/delivery?messageId=${messageId}&userId=${userId}`);
    assertError(await ask(dashboard, 'msg_none', ann.id), 404, 'not_found');
    assertError(await ask(dashboard, message.id, 'nobody-here'), 404, 'not_found');
    const other = (await signedInOwner(service.url)).in('env_other');
    assertError(await ask(other, message.id, ann.id), 404, 'not_found');
    assertError(await dashboard('GET', '/v1/diagnostics/delivery'), 400, 'invalid_request');
  });
});
