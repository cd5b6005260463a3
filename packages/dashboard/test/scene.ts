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
  const dashboard = await signedInOwner(url);
  const organization = (await dashboard.api('GET', '/v1/session')).body.organizations[0].id as string;
  return { conversation, message, webhook, call, organization };
}

async function startReceiver(): Promise<{ url: string; close: () => Promise<void> }> {
  const receiver = createServer((_request, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
    close: () => new Promise((resolve) => void receiver.close(() => resolve())),
  };
}
