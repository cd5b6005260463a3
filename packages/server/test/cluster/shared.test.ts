import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { rateLimits } from '@parley/protocol';
import { createDashboard, owner } from '../accounts/dashboard.ts';
import { text } from '../gateway/live-scene.ts';
import { assertError } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { environments } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { connect } from '../support/socket.ts';
import { signToken } from '../support/tokens.ts';
import { useNodes } from './nodes.ts';

/** What all nodes share besides events: typing, receipts, presence, limits, and who is put out. */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [a, b] = nodes as [Service, Service];

async function pair() {
  const [one, two] = await Promise.all([scene.actor(), scene.actor()]);
  const conv = await scene.group(one, [two]);
  const [here, there] = await Promise.all([cluster.online(a, one), cluster.online(b, two)]);
  return { one, two, conv, here, there };
}

test('presence#typing: typing reaches the live members on the other node, not its author', async () => {
  const { one, two, conv, here, there } = await pair();
  here.send('typing', { cid: conv.id, state: 'start' });
  assert.deepEqual((await there.ephemeral('typing')).d, { cid: conv.id, userId: one.id, state: 'start' });
  here.send('typing', { cid: conv.id, state: 'stop' });
  assert.equal((await there.ephemeral('typing')).d.state, 'stop');
  there.send('typing', { cid: conv.id, state: 'start' });
  assert.equal((await here.ephemeral('typing')).d.userId, two.id, 'the first that this socket hears of');
});

test('receipts#receipt: delivery and read receipts cross nodes; the reader’s other device on the other node learns its mark', async () => {
  const { two, conv, here, there } = await pair();
  const device = await cluster.online(a, two);
  const { seq } = await here.request('message.send', text(conv.id));
  await there.event('message.new', conv.id);
  there.send('delivered', { items: [{ cid: conv.id, seq }] });
  const receipt = await here.ephemeral('receipt', (d) => d.userId === two.id);
  assert.deepEqual(receipt.d, { cid: conv.id, userId: two.id, lastDeliveredSeq: seq });
  await there.request('read', { cid: conv.id, seq });
  for (const socket of [here, device]) {
    const { d } = await socket.ephemeral('receipt', (r) => r.lastReadSeq !== undefined);
    assert.equal(d.cid, conv.id);
    assert.equal(d.userId, two.id);
    assert.equal(d.lastReadSeq, seq);
  }
  // The sync on the device agrees.
  const { conversations } = await device.request('sync', { cursor: null });
  assert.equal(conversations.find((c: { id: string }) => c.id === conv.id).unreadCount, 0);
});

test('receipts#receipt: reads over REST on one node, one after the other: the last mark always reaches the other node', async () => {
  const { one, conv, there } = await pair();
  for (let i = 0; i < 3; i++) await scene.send(null, conv.id);
  for (let seq = 1; seq <= 3; seq++)
    await one.api('POST', `/v1/conversations/${conv.id}/read`, { seq: conv.lastSeq + seq });
  await there.ephemeral('receipt', (r) => r.userId === one.id && r.lastReadSeq === conv.lastSeq + 3);
});

test('presence#grace: a watcher on one node is told when a user comes online on the other; one socket left keeps it online', async () => {
  const [watcher, user] = await Promise.all([scene.actor(), scene.actor()]);
  await scene.group(watcher, [user]);
  const watching = await cluster.online(a, watcher);
  const { presence } = await watching.request('presence.watch', { userIds: [user.id] });
  assert.deepEqual(presence, [{ userId: user.id, online: false, lastSeenAt: null }]);
  const onB = await cluster.online(b, user);
  assert.equal((await watching.ephemeral('presence')).d.online, true);
  const onA = await cluster.online(a, user);
  await onA.close();
  await onB.barrier();
  const again = await watching.request('presence.watch', { userIds: [user.id] });
  assert.equal(again.presence[0].online, true);
  assert.equal(watching.frames.filter((f) => f.t === 'presence').length, 1, 'told once');
  await onB.close();
  // Back within the grace period, on the other node: nobody is told anything.
  await cluster.online(a, user);
  const still = await watching.request('presence.watch', { userIds: [user.id] });
  assert.equal(still.presence[0].online, true);
  assert.equal(watching.frames.filter((f) => f.t === 'presence').length, 1);
});

test('socket#ten-sockets: the eleventh socket of a user closes the oldest with 4009, on whichever node it is', async () => {
  const user = await scene.actor();
  const sockets = [];
  for (let i = 0; i < 10; i++) sockets.push(await cluster.online(i % 2 ? b : a, user));
  const eleventh = await cluster.online(b, user);
  assert.equal((await sockets[0]!.closed).code, 4009, 'the oldest is on the other node');
  const twelfth = await cluster.online(a, user);
  assert.equal((await sockets[1]!.closed).code, 4009);
  for (const socket of [...sockets.slice(2), eleventh, twelfth]) await socket.barrier();
});

test('plans#rates: the burst of sends is one for both nodes, over REST and socket', async () => {
  const user = await scene.actor();
  const conv = await scene.group(user, []);
  const socket = await cluster.online(b, user);
  const start = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      if (i % 2) return (await socket.ask('message.send', text(conv.id))).t === 'ack';
      const path = `/v1/conversations/${conv.id}/messages`;
      return (await user.api('POST', path, { text: 'x', clientMsgId: randomUUID() })).status === 201;
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const passed = answers.filter(Boolean).length;
  const { burst, perSecond } = rateLimits.send;
  assert.ok(passed >= burst, `${passed} passed`);
  assert.ok(passed <= burst + Math.ceil(seconds * perSecond) + 1, `${passed} passed in ${seconds} s`);
});

test('socket#put-out: deactivation (4003) and revocation (4001) on one node close the sockets on both', async () => {
  for (const [action, code] of [
    ['deactivate', 4003],
    ['revoke-tokens', 4001],
  ] as const) {
    const user = await scene.actor();
    const token = scene.token(user);
    const sockets = await Promise.all([connect(a, token), connect(b, token)]);
    assert.equal((await scene.server('POST', `/v1/users/${user.id}/${action}`)).status, 200);
    for (const socket of sockets) assert.equal((await socket.closed).code, code, action);
    await assert.rejects(connect(b, token), new RegExp(`"code":${code}`));
  }
});

test('socket#put-out: logins on one node that race a revocation on the other never leave a live socket', async () => {
  for (let round = 0; round < 5; round++) {
    const actor = await scene.actor();
    const token = scene.token(actor, { iat: Math.floor(Date.now() / 1000) - 5 });
    const logins = Array.from({ length: 6 }, () => connect(b, token).catch(() => null));
    const revoked = scene.server('POST', `/v1/users/${actor.id}/revoke-tokens`);
    const sockets = await Promise.all(logins);
    await revoked;
    for (const socket of sockets) if (socket) assert.equal((await socket.closed).code, 4001);
  }
});

test('socket#put-out: a key revoked and an environment suspended by the command line close the sockets on both nodes', async () => {
  const user = await scene.actor();
  const { secretKey } = await parley(a, 'key', 'create', environments.dev.id);
  const signed = signToken({ sub: user.id }, { secretKey });
  const sockets = await Promise.all([connect(a, signed), connect(b, signed)]);
  const others = await Promise.all([cluster.online(a, user), cluster.online(b, user)]);
  await parley(a, 'key', 'revoke', environments.dev.id, secretKey.split('_')[2]);
  for (const socket of sockets) assert.equal((await socket.closed).code, 4001);
  for (const socket of others) await socket.barrier();

  const tenant = { id: `user-${randomUUID()}`, api: scene.server };
  const theirs = await Promise.all([cluster.online(a, tenant, 'other'), cluster.online(b, tenant, 'other')]);
  await parley(a, 'env', 'set', environments.other.id, '--status', 'suspended');
  for (const socket of theirs) assert.equal((await socket.closed).code, 4003);
  for (const node of [a, b])
    await assert.rejects(cluster.online(node, tenant, 'other'), /"code":4003/, 'no node lets it in');
  await parley(a, 'env', 'set', environments.other.id, '--status', 'active');
  for (const socket of others) await socket.barrier();
});

test('dashboard#session: a session holds on every node, and wrong sign-ins are counted together', async () => {
  const [here, there] = [createDashboard(a.url), createDashboard(b.url)];
  const { body } = await here.signIn(owner.email, owner.password);
  there.cookie = here.cookie;
  assert.deepEqual((await there.api('GET', '/v1/session')).body, body);
  assert.equal((await there.api('DELETE', '/v1/session')).status, 204);
  assertError(await here.api('GET', '/v1/session'), 401, 'token_invalid');
  const wrong = { email: 'nobody@example.com', password: 'wrong' };
  for (let i = 0; i < 10; i++)
    assertError(await [here, there][i % 2]!.api('POST', '/v1/session', wrong), 401, 'invalid_credentials');
  for (const node of [here, there])
    assertError(await node.api('POST', '/v1/session', wrong), 429, 'rate_limited');
});
