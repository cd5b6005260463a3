import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import type { Clock } from '../../src/platform/clock.ts';
import { memoryPresence } from '../../src/platform/presence/memory.ts';
import type { PresenceRegistry, UserRef } from '../../src/platform/presence/port.ts';
import { redisPresence } from '../../src/platform/presence/redis.ts';
import { leaseKeys, userKeys } from '../../src/platform/presence/redis-scripts.ts';
import type { RedisConnection } from '../../src/platform/redis.ts';
import { StandingTime } from '../support/time.ts';
import { newUser, presenceSuite } from './presence-suite.ts';
import { endLease, passGrace, silent, until, useRedis } from './tools.ts';

const { redis, cluster, connect } = await useRedis();

interface Node {
  registry: PresenceRegistry;
  connection: RedisConnection;
  /** Users reported as having lost a node, in order. */
  dead: UserRef[];
  /** Sessions that a dead node had, in order. */
  lost: string[];
  /** As kill -9: nothing is said to Redis any more. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

async function node(
  url: string,
  name: string,
  options: { graceMs?: number; clock?: Clock } = {},
): Promise<Node> {
  const connection = await connect(url);
  const registry = redisPresence({
    connection,
    clock: systemClock,
    node: name,
    graceMs: 60_000,
    logger: silent,
    beatMs: 20,
    ...options,
  });
  const dead: UserRef[] = [];
  const lost: string[] = [];
  registry.onDeadNode(({ offline, sessions }) => {
    dead.push(...offline);
    lost.push(...sessions.map(({ env, user, session }) => `${env} ${user} ${session}`));
  });
  return {
    registry,
    connection,
    dead,
    lost,
    kill: () => connect.close(connection),
    close: async () => {
      await registry.close();
      await connect.close(connection);
    },
  };
}

const fake = { at: 1_700_000_000_000, now: () => fake.at, monotonic: () => fake.at };
presenceSuite('memory', {
  nodes: (names, graceMs) =>
    Promise.resolve(names.map((name) => memoryPresence({ clock: fake, node: name, graceMs }))),
  pass: (ms) => {
    fake.at += ms;
    return Promise.resolve();
  },
});

const places = [
  ['one Redis', redis],
  ['Redis Cluster', cluster],
] as const;

for (const [name, { url }] of places) {
  const clock = new StandingTime();
  presenceSuite(name, {
    nodes: async (names, graceMs) =>
      Promise.all(names.map(async (node_) => (await node(url, node_, { graceMs, clock })).registry)),
    pass: async (ms) => {
      clock.advance(ms);
      const connection = await connect(url);
      await passGrace(connection, ms);
      await connect.close(connection);
    },
  });

  test(`presence#online: ${name}: nodes know of each other's sockets`, async () => {
    const nodes = await Promise.all(['a', 'b'].map((id) => node(url, id)));
    const [a, b] = nodes.map((n) => n.registry);
    const ref = newUser();
    assert.equal((await a!.add(ref, 's1', 10)).cameOnline, true);
    assert.equal((await b!.add(ref, 's2', 10)).cameOnline, false);
    assert.equal(await a!.connections(ref.env), 2);
    assert.deepEqual(await b!.remove(ref, 's2'), { last: false });
    assert.deepEqual(await b!.online([ref]), [true]);
    assert.deepEqual(await a!.remove(ref, 's1'), { last: true });
    assert.equal(await b!.endGrace(ref), false);
    assert.equal((await b!.add(ref, 's3', 10)).cameOnline, false);
    assert.equal(await a!.endGrace(ref), false);
    assert.equal(await a!.connections(ref.env), 1);
    for (const n of nodes) await n.close();
  });

  test(`socket#ten-sockets: ${name}: the ten-socket rule holds across nodes at once`, async () => {
    const nodes = await Promise.all(['a', 'b', 'c'].map((id) => node(url, id)));
    const ref = newUser();
    const added = await Promise.all(
      Array.from({ length: 30 }, (_, i) => nodes[i % 3]!.registry.add(ref, `s${i}`, 10)),
    );
    const evicted = added.flatMap(({ evict }) => evict);
    assert.equal(added.filter((r) => r.cameOnline).length, 1);
    assert.equal(new Set(evicted.map(({ id }) => id)).size, 20);
    assert.equal(evicted.length, 20);
    for (const { node: at, id } of evicted) {
      assert.equal(at, 'abc'[Number(id.slice(1)) % 3]);
      await nodes['abc'.indexOf(at)]!.registry.remove(ref, id);
    }
    assert.equal(await nodes[0]!.registry.connections(ref.env), 10);
    const gone = new Set(evicted.map(({ id }) => id));
    const left = Array.from({ length: 30 }, (_, i) => `s${i}`).filter((id) => !gone.has(id));
    const last: boolean[] = [];
    for (const id of left) last.push((await nodes[Number(id.slice(1)) % 3]!.registry.remove(ref, id)).last);
    assert.deepEqual(last, [...new Array<boolean>(9).fill(false), true]);
    for (const n of nodes) await n.close();
  });

  test(`socket#dead-node: ${name}: a node killed leaves nobody online beyond its lease, and one other settles it`, async () => {
    const victim = await node(url, 'victim');
    const others = await Promise.all(['b', 'c'].map((id) => node(url, id)));
    const refs = Array.from({ length: 1_200 }, () => newUser(2_000_000 + url.length));
    const both = newUser(refs[0]!.env);
    await Promise.all([...refs, both].map((ref) => victim.registry.add(ref, `v${ref.user}`, 10)));
    await others[0]!.registry.add(both, 'other', 10);
    // One in its grace period: the node that would have settled it is gone too.
    assert.deepEqual(await victim.registry.remove(refs[0]!, `v${refs[0]!.user}`), { last: true });
    await victim.kill();
    assert.deepEqual(new Set(await others[0]!.registry.online(refs)), new Set([true]));
    await endLease(others[0]!.connection, 'victim');
    await until(() => others[0]!.dead.length + others[1]!.dead.length >= refs.length);
    const reported = others.flatMap((n) => n.dead.map(({ user }) => user)).sort((x, y) => x - y);
    assert.deepEqual(
      reported,
      refs.map(({ user }) => user),
    );
    await until(() => others[0]!.lost.length + others[1]!.lost.length >= refs.length);
    assert.deepEqual(
      others.flatMap((n) => n.lost).sort(),
      [...refs.slice(1), both].map(({ env, user }) => `${env} ${user} v${user}`).sort(),
      'each session that it still had is told, on one node, once',
    );
    const settled = await Promise.all(refs.flatMap((ref) => others.map((n) => n.registry.endGrace(ref))));
    assert.equal(settled.filter(Boolean).length, refs.length);
    assert.deepEqual(new Set(await others[1]!.registry.online(refs)), new Set([false]));
    assert.deepEqual(await others[1]!.registry.online([both]), [true]);
    // They are counted out in portions, beside what is told.
    await until(async () => (await others[1]!.registry.connections(refs[0]!.env)) === 1);
    for (const n of others) await n.close();
  });

  test(`presence#grace: ${name}: a node that ends in order leaves the grace periods that it began to another`, async () => {
    const nodes = await Promise.all(['a', 'b'].map((id) => node(url, id)));
    const ref = newUser();
    await nodes[0]!.registry.add(ref, 's1', 10);
    await nodes[0]!.registry.remove(ref, 's1');
    await nodes[0]!.close();
    assert.deepEqual(await nodes[1]!.registry.online([ref]), [true]);
    await endLease(nodes[1]!.connection, 'a');
    await until(() => nodes[1]!.dead.some(({ user }) => user === ref.user));
    assert.equal(await nodes[1]!.registry.endGrace(ref), true);
    await nodes[1]!.close();
  });
}

test('a clock of Redis that is set back or ahead ends no lease, keeps nobody online and puts no new socket out', async () => {
  const clock = new StandingTime();
  const one = await node(redis.url, 'one', { graceMs: 30_000, clock });
  const { client } = one.connection;
  const ref = newUser();
  await one.registry.add(ref, 's1', 2);
  await one.registry.add(ref, 's2', 2);
  const lease = (await client.zrange(leaseKeys[0], '0', '-1')).find((name) => name.startsWith('one#'));
  const beats = async (): Promise<void> => {
    const seen = await client.hget(leaseKeys[2], 'real');
    await until(async () => Number(await client.hget(leaseKeys[2], 'real')) !== Number(seen));
  };
  // As if Redis's clock had been 90 s behind at the last beat, and an hour ahead.
  for (const step of [-90_000, 3_600_000]) {
    await client.hincrby(leaseKeys[2], 'real', step);
    await beats();
    await beats();
    assert.equal(await one.registry.connections(ref.env), 2);
    assert.ok((await client.zscore(leaseKeys[0], lease!)) !== null, 'the same lease runs on');
  }
  // Opened when Redis's clock stood an hour ahead, they are still the older ones.
  const key = userKeys(`${ref.env}:${ref.user}`)[0]!;
  for (const member of await client.zrange(key, '0', '-1')) await client.zincrby(key, 3_600_000_000, member);
  const { evict } = await one.registry.add(ref, 's3', 2);
  assert.deepEqual(
    evict.map(({ id }) => id),
    ['s1'],
  );
  await one.registry.remove(ref, 's2');
  assert.deepEqual(await one.registry.remove(ref, 's3'), { last: true });
  // Set back by an hour, Redis would keep the grace period for as long.
  await client.pexpire(userKeys(`${ref.env}:${ref.user}`)[1]!, 3_630_000);
  assert.equal(await one.registry.endGrace(ref), false);
  clock.advance(30_000);
  assert.equal(await one.registry.endGrace(ref), true);
  assert.deepEqual(await one.registry.online([ref]), [false]);
  await one.close();
});
