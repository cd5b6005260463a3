import assert from 'node:assert/strict';
import { test } from 'node:test';
import { text } from '../gateway/live-scene.ts';
import { freePort } from '../storage/process.ts';
import type { Service } from '../support/service.ts';
import type { TestSocket } from '../support/socket.ts';
import { useNodes, until } from './nodes.ts';

/** Redis is killed and comes back empty (events#resync-hint). */

const metricsPort = await freePort();
const { cluster, scene, nodes } = useNodes([{ CHAT_METRICS_PORT: String(metricsPort) }, {}]);
const [a, b] = nodes as [Service, Service];

/** A balancer that asks keeps the node: without Redis it still does its work. */
const ready = async (node: Service): Promise<string> => {
  const response = await fetch(`${node.url}/readyz`);
  assert.equal(response.status, 200);
  return ((await response.json()) as { status: string }).status;
};

/** docs/operations/metrics.md: the same for Prometheus. */
const shownReady = async (): Promise<string | undefined> => {
  const shown = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return /^parley_ready (\S+)$/m.exec(shown)?.[1];
};

test('socket#nodes: without Redis sends commit and acknowledge on both nodes and reach their own sockets; afterwards all is whole', async () => {
  const people = await Promise.all(Array.from({ length: 4 }, () => scene.actor()));
  const conv = await scene.group(people[0]!, people.slice(1));
  const sockets = await Promise.all(people.map((p, i) => cluster.online(i % 2 ? b : a, p)));
  const [a0, b0, a1, b1] = sockets as [TestSocket, TestSocket, TestSocket, TestSocket];
  await a0.request('presence.watch', { userIds: [people[1]!.id] });
  await a0.request('message.send', text(conv.id, 'before'));
  for (const socket of sockets) await socket.event('message.new', conv.id);

  await until(async () => (await shownReady()) === '1');
  await cluster.redis.kill();
  await until(async () => (await shownReady()) === '0.5');
  for (const node of [a, b]) {
    await until(async () => (await ready(node)) === 'degraded');
    assert.equal((await fetch(`${node.url}/healthz`)).status, 200, 'alive all the same');
  }
  const acked: number[] = [];
  for (let i = 0; i < 5; i++) {
    acked.push((await a0.request('message.send', text(conv.id, `a ${i}`))).seq);
    acked.push((await b0.request('message.send', text(conv.id, `b ${i}`))).seq);
    acked.push((await scene.send(people[2]!, conv.id, { text: `rest a ${i}` })).seq);
    acked.push((await scene.send(cluster.at(b, people[3]!), conv.id, { text: `rest b ${i}` })).seq);
  }
  assert.deepEqual(
    acked,
    acked.map((_, i) => acked[0]! + i),
    'one order for both nodes',
  );
  // Each node's own sockets go on; what is missing in between is not waited for long.
  for (const [socket, own] of [
    [a1, /^a /],
    [b1, /^b /],
  ] as const)
    for (let i = 0; i < 5; i++)
      await socket.next((f) => f.e === 'message.new' && own.test(f.d.message.text), `${own}`);
  for (const socket of sockets) {
    const seqs = socket.events(conv.id).map((f) => f.seq as number);
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].sort((x, y) => x - y),
      'never twice, never backwards',
    );
  }
  // A user who logs in meanwhile is served too.
  const late = await scene.actor();
  const added = await people[0]!.api('POST', `/v1/conversations/${conv.id}/members`, { userIds: [late.id] });
  assert.equal(added.status, 200);
  const lateSocket = await cluster.online(b, late);
  const { conversations } = await lateSocket.request('sync', { cursor: null });
  assert.equal(conversations.length, 1);

  await cluster.redis.start();
  for (const node of [a, b]) await until(async () => (await ready(node)) === 'ready');
  for (const socket of [...sockets, lateSocket]) await socket.ephemeral('resync_hint');
  const last = await scene.send(null, conv.id, { text: 'after' });
  for (const [i, socket] of sockets.entries()) {
    await socket.next((f) => f.e === 'message.new' && f.seq === last.seq, 'events cross again');
    const sync = await socket.request('sync', { cursor: null });
    assert.equal(sync.conversations.find((c: { id: string }) => c.id === conv.id).lastSeq, last.seq);
    const { body } = await people[i]!.api('GET', `/v1/conversations/${conv.id}/events?after=0&limit=200`);
    assert.deepEqual(
      body.data.map((e: { seq: number }) => e.seq),
      Array.from({ length: last.seq }, (_, n) => n + 1),
      'nothing is lost',
    );
  }
});

test('socket#nodes: after Redis came back empty, presence, the 10-socket rule and events between nodes are right again', async () => {
  const [watcher, user] = await Promise.all([scene.actor(), scene.actor()]);
  const conv = await scene.group(watcher, [user]);
  const watching = await cluster.online(a, watcher);
  const sockets = [];
  for (let i = 0; i < 10; i++) sockets.push(await cluster.online(i % 2 ? a : b, user));
  const connections = async (): Promise<number> =>
    (await scene.server('GET', '/v1/analytics')).body.live.connections;
  const before = await connections();
  await cluster.redis.kill();
  for (const node of [a, b]) await until(async () => (await ready(node)) === 'degraded');
  await cluster.redis.start();
  await watching.ephemeral('resync_hint');
  const online = async (): Promise<boolean> =>
    (await watching.request('presence.watch', { userIds: [user.id] })).presence[0].online;
  await until(online);
  for (const socket of sockets) await socket.ephemeral('resync_hint');
  await until(async () => (await ready(a)) === 'ready');
  // Each node registers its own again, one after the other.
  await until(async () => (await connections()) === before);
  const eleventh = await cluster.online(a, user);
  assert.equal((await sockets[0]!.closed).code, 4009, 'the order of opening was kept');
  const { seq } = await eleventh.request('message.send', text(conv.id));
  await sockets[2]!.next((f) => f.t === 'event' && f.seq === seq, 'the message on the other node');
});

test('socket#put-out: a user put out by one node while Redis was away is out on the other when it is back', async () => {
  const [banned, revoked] = await Promise.all([scene.actor(), scene.actor()]);
  const [one, two] = await Promise.all([cluster.online(b, banned), cluster.online(b, revoked)]);
  await cluster.redis.kill();
  await until(async () => (await ready(a)) === 'degraded');
  await scene.server('POST', `/v1/users/${banned.id}/deactivate`);
  // A second later: a token's time has whole seconds, and the socket is older than that.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await scene.server('POST', `/v1/users/${revoked.id}/revoke-tokens`);
  await cluster.redis.start();
  assert.equal((await one.closed).code, 4003);
  assert.equal((await two.closed).code, 4001);
});
