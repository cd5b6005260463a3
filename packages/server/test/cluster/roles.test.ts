import assert from 'node:assert/strict';
import { test } from 'node:test';
import { text } from '../gateway/live-scene.ts';
import { assertError, serverApi } from '../support/api.ts';
import type { Service } from '../support/service.ts';
import { open } from '../support/socket.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { useNodes } from './nodes.ts';

/** CHAT_ROLES: one process for the API, one for sockets, one for background work. */

const { cluster, scene, nodes } = useNodes(
  ['api', 'gateway', 'worker'].map((role) => ({
    CHAT_ROLES: role,
    CHAT_ALLOW_PRIVATE_TARGETS: 'true',
  })),
);
const [api, gateway, worker] = nodes as [Service, Service, Service];

test('roles: each does its own part only, and all are healthy and ready', async () => {
  for (const node of [api, gateway, worker])
    for (const path of ['/healthz', '/readyz']) assert.equal((await fetch(node.url + path)).status, 200);
  assert.equal((await serverApi(api.url)('GET', '/v1/users')).status, 200);
  for (const node of [gateway, worker])
    assertError(await serverApi(node.url)('GET', '/v1/users'), 404, 'not_found');
  for (const node of [api, worker]) await assert.rejects(open(node).opened);
});

test('roles: what is done over the API reaches the sockets of the gateway, receipts and the end of access as well', async () => {
  const [one, two] = await Promise.all([scene.actor(), scene.actor()]);
  const [first, second] = await Promise.all([cluster.online(gateway, one), cluster.online(gateway, two)]);
  const conv = await scene.group(one, [two]);
  for (const socket of [first, second]) await socket.event('conversation.created', conv.id);
  const sent = await scene.send(one, conv.id);
  assert.equal((await second.event('message.new', conv.id)).seq, sent.seq);
  const ack = await second.request('message.send', text(conv.id));
  assert.equal(ack.seq, sent.seq + 1, 'socket operations run on the gateway itself');
  // Receipts are held to one a second: the later mark waits on the API's process, and must leave it.
  for (const seq of [sent.seq, ack.seq])
    assert.equal((await one.api('POST', `/v1/conversations/${conv.id}/read`, { seq })).status, 200);
  await second.ephemeral('receipt', (d) => d.userId === one.id && d.lastReadSeq === ack.seq);
  await scene.server('POST', `/v1/users/${two.id}/deactivate`);
  assert.equal((await second.closed).code, 4003);
  await first.close();
});

test('roles: webhooks leave from the worker alone, woken by what the others commit', async () => {
  const receiver = await startReceiver();
  try {
    const { secret } = await addEndpoint(scene.server, receiver.url, ['message.created']);
    assert.ok(secret.startsWith('whsec_'));
    const user = await scene.actor();
    const conv = await scene.group(user, []);
    const socket = await cluster.online(gateway, user);
    const { id } = await socket.request('message.send', text(conv.id, 'from the gateway'));
    await receiver.next('message.created', (r) => r.data.message.id === id);
    const sent = await scene.send(user, conv.id);
    await receiver.next('message.created', (r) => r.data.message.id === sent.id);
    await socket.close();
  } finally {
    await receiver.close();
  }
});

test('roles: each ends with 0', async () => {
  assert.deepEqual(await Promise.all([api, worker, gateway].map((node) => node.stop())), [0, 0, 0]);
});
