import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createApi, serverApi } from '../../server/test/support/api.ts';
import { connect } from '../../server/test/support/socket.ts';
import type { EnvironmentName } from '../../server/test/support/service.ts';
import { signedInOwner } from '../../server/test/accounts/dashboard.ts';

/** An environment in which every page has something to show; calls need a media node (`pretendNode`). */
export interface Shop {
  conversation: string;
  message: string;
  webhook: string;
  call: string;
  organization: string;
}

export async function fillShop(url: string, environment: EnvironmentName = 'dev'): Promise<Shop> {
  const server = serverApi(url, environment);
  const ok = async (...call: Parameters<typeof server>) => {
    const answer = await server(...call);
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body;
  };
  const people = {
    alice: 'Alice Adler',
    bob: 'Bob Brandt',
    carla: 'Carla Costa',
    dave: 'Dave Dietz',
    erin: 'Erin Ek',
  };
  for (const [id, name] of Object.entries(people))
    await ok('PUT', `/v1/users/${id}`, { name, metadata: { city: 'Bremen', tier: 2 } });
  await ok('POST', '/v1/users/dave/deactivate');
  const { id: conversation } = await ok('POST', '/v1/conversations', {
    type: 'group',
    name: 'Support: order 4711',
    members: ['alice', 'bob', 'carla'],
    ownerId: 'carla',
    metadata: { order: 4711 },
  });
  await ok('POST', '/v1/conversations', { type: 'direct', members: ['alice', 'bob'] });
  const say = (senderId: string, text: string) =>
    ok('POST', `/v1/conversations/${conversation}/messages`, { senderId, text });
  await say('alice', 'Hello, my parcel has not arrived.');
  const { id: message } = await say('carla', 'Let me have a look.');
  await ok('PATCH', `/v1/messages/${message}`, { text: 'Let me have a look for you.', expectedVersion: 1 });
  const gone = await say('bob', 'Wrong window, sorry.');
  await ok('DELETE', `/v1/messages/${gone.id}`);
  await say('carla', 'It is with the neighbours at number 7.\nThey are at home until six.');

  const { token } = await ok('POST', '/v1/tokens', { userId: 'alice' });
  await connect({ url }, token as string);
  const device = await createApi(url, token as string)('POST', '/v1/push/devices', {
    provider: 'fcm',
    token: 'f'.repeat(40),
  });
  assert.equal(device.status, 201);

  const { id: call } = await ok('POST', '/v1/calls', {
    conversationId: conversation,
    kind: 'video',
    callerId: 'carla',
  });

  const receiver = await startReceiver();
  const { id: webhook } = await ok('POST', '/v1/webhooks', {
    url: receiver.url,
    events: ['message.created', 'conversation.created'],
    description: 'Order desk',
  });
  await ok('POST', `/v1/webhooks/${webhook}/test`);
  await receiver.close();
  await ok('POST', `/v1/webhooks/${webhook}/test`);
  await fillReports(url, environment);
  const dashboard = await signedInOwner(url);
  const organization = (await dashboard.api('GET', '/v1/session')).body.organizations[0].id as string;
  return { conversation, message, webhook, call, organization };
}

/** Things that were reported: of a newcomer, of a conversation, and one that was decided. */
async function fillReports(url: string, environment: EnvironmentName): Promise<void> {
  const server = serverApi(url, environment);
  const ok = async (...call: Parameters<typeof server>) => {
    const answer = await server(...call);
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body;
  };
  await ok('PUT', '/v1/users/mallory', { name: 'Mallory Quick' });
  const members = ['alice', 'bob', 'carla', 'mallory'];
  const { id } = await ok('POST', '/v1/conversations', { type: 'group', name: 'Newcomers', members });
  const say = (senderId: string, text: string) =>
    ok('POST', `/v1/conversations/${id}/messages`, { senderId, text });
  const report = async (userId: string, fields: object) => {
    const { token } = await ok('POST', '/v1/tokens', { userId });
    const answer = await createApi(url, token as string)('POST', '/v1/reports', fields);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body;
  };
  await say('alice', 'Welcome, everybody. Say hello.');
  await say('mallory', 'Hi all!');
  const old = await say('mallory', 'Message me for a secret offer.');
  const { id: first } = await report('carla', { messageId: old.id, reason: 'spam' });
  await ok('PATCH', `/v1/reports/${first}`, { status: 'resolved', note: 'First time: a warning.' });
  await say('bob', 'Has anybody been to the market hall?');
  await report('alice', { userId: 'mallory', reason: 'abuse', note: 'Writes to everybody who joins.' });
  await report('alice', { conversationId: id, reason: 'other' });
  const bad = await say('mallory', 'Earn 5,000 a week from home. Only today: quick-gold.example');
  await report('bob', { messageId: bad.id, reason: 'spam', note: 'The third time today.' });
  await report('carla', { messageId: bad.id, reason: 'illegal' });
  await ok('PATCH', `/v1/messages/${bad.id}`, { text: 'Have a nice day.', expectedVersion: 1 });
  await say('carla', 'Please do not click on that.');
  await say('alice', 'It is on Fridays, until six.');
  const list = { entries: ['quick*gold', 'secret offer'], action: 'report', conversations: 'all' };
  await ok('PUT', '/v1/moderation/lists/offers', list);
}

async function startReceiver(): Promise<{ url: string; close: () => Promise<void> }> {
  const receiver = createServer((_request, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
    close: () => new Promise((resolve) => void receiver.close(() => resolve())),
  };
}
