import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Cluster } from 'ioredis';
import { MemoryBroker } from '../gateway/memory-broker.ts';
import { redisBus } from '../../src/platform/bus/redis.ts';
import type { RedisBus } from '../../src/platform/bus/redis.ts';
import { connectRedis } from '../../src/platform/redis.ts';
import type { RedisConnection } from '../../src/platform/redis.ts';
import { startRedis } from '../support/redis.ts';
import { busSuite, hear } from './bus-suite.ts';
import { patienceMs, silent, until, useRedis } from './tools.ts';

const { redis, cluster, connect } = await useRedis();

let made = 0;
const busOf = (connection: RedisConnection, waitMs = patienceMs): RedisBus =>
  redisBus({ connection, node: `node${++made}`, logger: silent, waitMs });
const node = async (url: string, waitMs?: number): Promise<RedisBus> => busOf(await connect(url), waitMs);

busSuite('memory', {
  nodes: (count) => {
    const broker = new MemoryBroker();
    return Promise.resolve(Array.from({ length: count }, () => broker.bus()));
  },
});
for (const [name, { url }] of [
  ['one Redis', redis],
  ['Redis Cluster', cluster],
] as const)
  busSuite(name, { nodes: (count) => Promise.all(Array.from({ length: count }, () => node(url))) });

test('events#resync-hint: a node that lost its subscriptions hears of it once, when all of them are back', async () => {
  const own = await startRedis();
  const buses = [await node(own.url), await node(own.url)];
  const heard = buses.map(hear);
  const channels = Array.from({ length: 2_000 }, (_, i) => `c:${i}`);
  for (const bus of buses) await bus.subscribe(channels);
  for (const round of [1, 2]) {
    await own.kill();
    await until(() => buses.every((bus) => !bus.connected));
    await own.start();
    let back = 0;
    await until(() => heard.every((h) => h.restored === round));
    // Everything published from here on arrives.
    for (const channel of channels) buses[0]!.publish(channel, `after ${round}`);
    await until(() => (back = heard[1]!.messages.length) >= 2_000 * round);
    assert.equal(back, 2_000 * round);
    assert.deepEqual(
      heard.map((h) => h.restored),
      [round, round],
    );
    assert.ok(buses.every((bus) => bus.connected));
  }
  for (const bus of buses) await bus.close();
  await own.stop();
});

test('events#resync-hint: without Redis a subscription does not hang or fail, and is made when Redis is back', async () => {
  const own = await startRedis();
  const buses = [await node(own.url, 200), await node(own.url, 200)];
  const heard = buses.map(hear);
  await own.kill();
  await until(() => buses.every((bus) => !bus.connected));
  // On a slow machine the first connection has taken longer than 200 ms, and that was a loss too.
  const before = heard[1]!.restored;
  await buses[1]!.subscribe(['c:1']);
  await buses[1]!.subscribe(['c:2', 'c:3']);
  buses[1]!.unsubscribe(['c:3']);
  await own.start();
  await until(() => heard[1]!.restored > before && buses[0]!.connected);
  for (const channel of ['c:3', 'c:2', 'c:1']) buses[0]!.publish(channel, 'x');
  await until(() => heard[1]!.messages.length === 2);
  assert.deepEqual(heard[1]!.messages, [
    ['c:2', 'x'],
    ['c:1', 'x'],
  ]);
  for (const bus of buses) await bus.close();
  await own.stop();
});

test('events#resync-hint: a Redis that hangs counts as lost', async () => {
  const own = await startRedis();
  const connection = connectRedis(own.url, silent, 500);
  const bus = busOf(connection, 200);
  const heard = hear(bus);
  await until(() => bus.connected);
  own.pause();
  await bus.subscribe(['c:2']);
  assert.equal(bus.connected, false);
  const before = heard.restored;
  own.resume();
  await until(() => heard.restored > before);
  const other = await node(own.url);
  await until(() => other.connected);
  other.publish('c:2', 'x');
  await until(() => heard.messages.length === 1);
  await bus.close();
  await other.close();
  await connection.close();
  await own.stop();
});

test('events#resync-hint: messages that could not be published are told to the nodes that wait for them', async () => {
  const buses = [await node(redis.url), await node(redis.url)];
  const heard = buses.map(hear);
  const publisher = await connect(redis.url);
  const cut = busOf(publisher);
  const cutHeard = hear(cut);
  await Promise.all([...buses, cut].map((bus) => bus.subscribe(['c:1'])));
  publisher.client.disconnect(true);
  await until(() => publisher.client.status !== 'ready');
  cut.publish('c:1', 'lost');
  await until(() => heard.every((h) => h.restored === 1));
  assert.equal(cutHeard.restored, 0);
  assert.deepEqual(heard[0]!.messages, []);
  for (const bus of [...buses, cut]) await bus.close();
});

test('events#resync-hint: a Redis Cluster that gives a slot to another node loses no subscription for long', async () => {
  const buses = [await node(cluster.url), await node(cluster.url)];
  const heard = buses.map(hear);
  const channels = Array.from({ length: 1_000 }, (_, i) => `c:${i}`);
  await buses[1]!.subscribe(channels);
  // The slot of the hash tag {7}.
  const connection = await connect(cluster.url);
  const slot = (await connection.client.cluster('KEYSLOT', '7')) as unknown as number;
  const owner = Math.floor(slot / Math.ceil(16_384 / 3));
  await cluster.moveSlot(slot, (owner + 1) % 3);
  await until(() => heard[1]!.restored > 0 && buses[1]!.connected);
  const seen = new Set<string>();
  await until(async () => {
    for (const channel of channels) buses[0]!.publish(channel, 'x');
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const [channel] of heard[1]!.messages) seen.add(channel);
    return seen.size === channels.length;
  });
  await cluster.moveSlot(slot, owner);
  for (const bus of buses) await bus.close();
});

test('events#resync-hint: a node of the Redis Cluster that is gone and back is a loss that is told', async () => {
  const buses = [await node(cluster.url), await node(cluster.url)];
  const heard = buses.map(hear);
  const channels = Array.from({ length: 1_000 }, (_, i) => `c:${i}`);
  await buses[1]!.subscribe(channels);
  await cluster.nodes[1]!.kill();
  await until(() => !buses[1]!.connected);
  await cluster.nodes[1]!.start();
  await until(() => heard[1]!.restored > 0);
  const seen = new Set<string>();
  await until(async () => {
    for (const channel of channels) buses[0]!.publish(channel, 'x');
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const [channel] of heard[1]!.messages) seen.add(channel);
    return seen.size === channels.length;
  });
  for (const bus of buses) await bus.close();
});

test('a connection that ends in the middle of a look at the slots of a Redis Cluster leaves no timer behind', async () => {
  const connection = await connect(cluster.url);
  const looking = Promise.withResolvers<() => void>();
  (connection.client as Cluster).refreshSlotsCache = (done) => looking.resolve(() => done?.());
  const finish = await looking.promise;
  await connect.close(connection);
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  finish();
  assert.equal(timers(), before);
});
