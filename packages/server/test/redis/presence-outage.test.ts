import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import type { UserRef } from '../../src/platform/presence/port.ts';
import { redisPresence } from '../../src/platform/presence/redis.ts';
import type { RedisConnection } from '../../src/platform/redis.ts';
import { startRedis } from '../support/redis.ts';
import type { TestRedis } from '../support/redis.ts';
import { newUser } from './presence-suite.ts';
import { connections, endLease, silent, until } from './tools.ts';

const connect = connections();
const servers: TestRedis[] = [];
after(async () => {
  await connect.closeAll();
  await Promise.all(servers.map((server) => server.stop()));
});

/** The connection ends, and stays away until `client.connect()`. */
async function cut({ client }: RedisConnection): Promise<void> {
  client.disconnect();
  await until(() => client.status === 'end');
}

async function setup() {
  const server = await startRedis();
  servers.push(server);
  const nodes = await Promise.all(
    ['a', 'b'].map(async (node) => {
      const connection = await connect(server.url);
      const options = {
        connection,
        clock: systemClock,
        node,
        graceMs: 60_000,
        logger: silent,
        beatMs: 20,
      };
      const registry = redisPresence(options);
      const dead: UserRef[] = [];
      registry.onDeadNode(({ offline }) => dead.push(...offline));
      return { registry, connection, dead };
    }),
  );
  return {
    server,
    nodes,
    a: nodes[0]!,
    b: nodes[1]!,
    close: () => Promise.all(nodes.map(({ registry }) => registry.close())),
  };
}

test('socket#nodes: without Redis a node goes by its own sockets, and nothing fails', async () => {
  const { server, a, b, close } = await setup();
  const [before, during, elsewhere] = [newUser(), newUser(), newUser()];
  await a.registry.add(before, 'old', 2);
  await b.registry.add(elsewhere, 'other', 2);
  await server.kill();
  assert.deepEqual(await a.registry.add(before, 'new', 2), {
    refused: false,
    evict: [],
    cameOnline: false,
    connections: 2,
  });
  assert.deepEqual(await a.registry.add(before, 'newer', 2), {
    evict: [{ node: 'a', id: 'old' }],
    refused: false,
    cameOnline: false,
    connections: 2,
  });
  assert.deepEqual(await a.registry.add(during, 's', 2), {
    refused: false,
    evict: [],
    cameOnline: true,
    connections: 1,
  });
  assert.deepEqual(await a.registry.online([before, during, elsewhere]), [true, true, false]);
  assert.equal(await a.registry.connections(before.env), 2);
  assert.deepEqual(await a.registry.remove(during, 's'), { last: true });
  assert.equal(await a.registry.endGrace(during), false);
  await close();
});

test('socket#nodes: an empty Redis that comes back learns every live socket again', async () => {
  const { server, a, b, close } = await setup();
  const [stays, leaves, comes] = [newUser(), newUser(), newUser()];
  for (const [i, ref] of [stays, leaves].entries()) await a.registry.add(ref, `s${i}`, 10);
  await a.registry.add(stays, 'second', 10);
  await b.registry.add(stays, 'third', 10);
  await server.kill();
  await a.registry.remove(leaves, 's1');
  await a.registry.add(comes, 's2', 10);
  await server.start();
  await until(async () => (await b.registry.connections(stays.env)) === 3);
  await until(async () => (await b.registry.connections(comes.env)) === 1);
  assert.deepEqual(await b.registry.online([stays, leaves, comes]), [true, false, true]);
  // The order of their opening was kept.
  const { evict } = await b.registry.add(stays, 'fourth', 2);
  assert.deepEqual(evict, [
    { node: 'a', id: 's0' },
    { node: 'a', id: 'second' },
  ]);
  assert.deepEqual([...a.dead, ...b.dead], []);
  await close();
});

test('socket#nodes: a node that lost only its own connection is registered once when it is back', async () => {
  const { a, b, close } = await setup();
  const [stays, leaves] = [newUser(), newUser()];
  await a.registry.add(stays, 's1', 10);
  await a.registry.add(leaves, 's2', 10);
  await cut(a.connection);
  assert.deepEqual(await a.registry.remove(leaves, 's2'), { last: true });
  await a.connection.client.connect();
  await until(async () => b.dead.length + a.dead.length > 0);
  // Redis learnt of the end only now: the former lease is cleared, and whoever cleared it settles.
  assert.deepEqual([...a.dead, ...b.dead], [leaves]);
  assert.equal(await b.registry.endGrace(leaves), true);
  assert.deepEqual(await b.registry.online([stays, leaves]), [true, false]);
  assert.deepEqual((await b.registry.add(stays, 's3', 1)).evict, [{ node: 'a', id: 's1' }]);
  // The sockets of a lease are counted out after what it had was told.
  await until(async () => (await b.registry.connections(leaves.env)) === 0);
  await close();
});

test('socket#nodes: a node that was away for longer than its lease comes back with its sockets', async () => {
  const { a, b, close } = await setup();
  const ref = newUser();
  await a.registry.add(ref, 's1', 10);
  await cut(a.connection);
  await endLease(b.connection, 'a');
  await until(() => b.dead.length === 1);
  assert.equal(await b.registry.endGrace(ref), true);
  assert.deepEqual(await b.registry.online([ref]), [false]);
  await until(async () => (await b.registry.connections(ref.env)) === 0);
  await a.connection.client.connect();
  await until(async () => (await b.registry.online([ref]))[0]!);
  await until(async () => (await b.registry.connections(ref.env)) === 1);
  assert.deepEqual(await b.registry.endGrace(ref), false);
  assert.deepEqual(await a.registry.remove(ref, 's1'), { last: true });
  assert.equal(b.dead.length, 1);
  await close();
});
