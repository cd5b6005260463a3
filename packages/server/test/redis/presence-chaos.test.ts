import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { realtime } from '@parley/protocol';
import { seed } from '../../../../scripts/seed.ts';
import { NodeBus } from '../../src/features/node-bus.ts';
import { redisBus } from '../../src/platform/bus/redis.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Db } from '../../src/platform/postgres/db.ts';
import { redisPresence } from '../../src/platform/presence/redis.ts';
import { connectRedis } from '../../src/platform/redis.ts';
import { Presence } from '../../src/realtime/presence.ts';
import type { LiveSession, LocalUser } from '../../src/realtime/local-user.ts';
import { startRedis } from '../support/redis.ts';
import { silent, until } from './tools.ts';

/**
 * docs/cluster.md, When something is away: Redis is killed, frozen and cut off at random, while users come and go on three nodes.
 * After every fault each watcher has been told of each user how it is.
 */

const env = 1;
const people = Array.from({ length: 6 }, (_, i) => ({ no: i + 2, id: `u${i + 2}` }));
/** Milliseconds; the clock of Presence goes faster by as much. */
const graceMs = 1_000;
const faster = realtime.presenceGraceMs / graceMs;
const clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * faster,
};

const stops: (() => Promise<void>)[] = [];
after(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** The store, of which presence needs only who a user is; nobody blocks anybody. */
const query = (text: string, values: unknown[][]): Promise<unknown[]> => {
  if (text.includes('FROM blocks')) return Promise.resolve([]);
  const known = values[1]!.map((one) => people.find(({ no, id }) => no === one || id === one)!);
  const seen = text.startsWith('UPDATE') ? values[2]! : [];
  return Promise.resolve(
    known.map(({ no, id }, i) => ({ no, userId: id, lastSeenAt: (seen[i] as string | undefined) ?? null })),
  );
};

async function createNode(url: string, name: string) {
  const connection = connectRedis(url, silent);
  assert.ok(await connection.ready(60_000), 'Redis answers');
  const redis = redisBus({ connection, node: name, logger: silent });
  const bus = new NodeBus(redis);
  const registry = redisPresence({
    connection,
    clock: systemClock,
    node: name,
    graceMs,
    logger: silent,
    beatMs: 20,
    leaseMs: 3_000,
  });
  const presence = new Presence({
    registry,
    bus,
    clock,
    logger: silent,
    db: { query } as unknown as Db,
    sharing: (_env, _no, others) => Promise.resolve(new Set(others)),
  });
  bus.onRestored(() => presence.restored());
  const timer = setInterval(() => presence.tick(), 20);
  stops.push(async () => {
    clearInterval(timer);
    await registry.close();
    await redis.close();
    await connection.close();
  });
  /** What somebody on this node was told last. */
  const told = new Map<string, boolean>();
  const send = (frame: Buffer): void => {
    const text = frame.toString();
    const { d } = JSON.parse(text.slice(text.indexOf('{'))) as { d: { userId: string; online: boolean } };
    told.set(d.userId, d.online);
  };
  const user = { env, no: 1, id: 'u1', sessions: [], routes: [], loading: null, trace: null } as unknown;
  const session = { user: user as LocalUser, state: 'live', send } as unknown as LiveSession;
  const snapshot = await presence.watching.watch(
    session,
    people.map(({ id }) => id),
  );
  for (const { userId, online } of snapshot) told.set(userId, online);
  return { connection, presence, told };
}
type Node = Awaited<ReturnType<typeof createNode>>;

/** Numbers from 0 up to `below`, the same for the same seed. */
function numbers(from: number): (below: number) => number {
  let state = from >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const rounds = 8;

test('presence#faults: after every fault of Redis each watcher on each node has been told who is online', async () => {
  const redis = await startRedis();
  stops.push(() => redis.stop());
  const nodes: Node[] = [];
  for (const name of ['a', 'b', 'c']) nodes.push(await createNode(redis.url, name));
  const choose = numbers(seed('presence under faults'));
  const open: { node: Node; user: (typeof people)[number]; session: string }[] = [];
  let made = 0;

  const come = async (): Promise<void> => {
    const [node, user, session] = [
      nodes[choose(nodes.length)]!,
      people[choose(people.length)]!,
      `s${++made}`,
    ];
    const added = await node.presence.opened({ env, user: user.no }, session, null);
    if (added.cameOnline) node.presence.cameOnline(user.no, { userId: user.id, lastSeenAt: null });
    open.push({ node, user, session });
  };
  const go = async (): Promise<void> => {
    const [one] = open.splice(choose(open.length), 1);
    if (one) await one.node.presence.closed({ env, user: one.user.no }, one.session);
  };
  const some = async (): Promise<void> => {
    for (let i = choose(5); i > 0; i--) await (open.length > 8 || choose(2) === 0 ? go() : come());
  };
  const wrong = (): string[] =>
    nodes.flatMap(({ told }, i) =>
      people.flatMap(({ id }) => {
        const online = open.some(({ user }) => user.id === id);
        return told.get(id) === online
          ? []
          : [`node ${i} was told that ${id} is ${online ? 'offline' : 'online'}`];
      }),
    );
  const faults: Record<string, () => Promise<void>> = {
    killed: async () => {
      await redis.kill();
      await some();
      await redis.start();
    },
    'killed for longer than the grace period': async () => {
      await redis.kill();
      await some();
      await new Promise((resolve) => setTimeout(resolve, 2 * graceMs));
      await redis.start();
    },
    'cut off from one node': async () => {
      const { client } = nodes[choose(nodes.length)]!.connection;
      client.disconnect();
      await until(() => client.status === 'end');
      await some();
      await new Promise((resolve) => setTimeout(resolve, choose(2) * 2 * graceMs));
      await client.connect();
    },
  };

  for (let round = 1; round <= rounds; round++) {
    await some();
    const names = Object.keys(faults);
    const fault = names[choose(names.length)]!;
    await faults[fault]!();
    await some();
    const late = setTimeout(() => console.log(`round ${round}, Redis was ${fault}:`, wrong()), 20_000);
    await until(() => wrong().length === 0);
    clearTimeout(late);
  }
});
