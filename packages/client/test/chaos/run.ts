import assert from 'node:assert/strict';
import { environments } from '../../../server/test/support/service.ts';
import { act, createActor } from './actor.ts';
import type { Actor } from './actor.ts';
import { startProxy } from './proxy.ts';
import { seeded } from './random.ts';
import type { Random } from './random.ts';
import { verify } from './verify.ts';
import { startWorld } from './world.ts';
import type { World } from './world.ts';

export interface ChaosOptions {
  seed: number;
  clients: number;
  nodes: number;
  /** How long everybody talks while things break. */
  seconds: number;
  /** Pause between two faults, and between two acts of one client. */
  faultMs: number;
  actMs: number;
  /** Instead: until so many nodes were killed and so many messages acknowledged. */
  soak?: { kills: number; messages: number };
  log: (line: string) => void;
}

const { secretKey } = environments.dev;
const settleMs = 90_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Real SDK clients through proxies that delay, stall, cut and half-close, while nodes, Redis and PostgreSQL are killed and come
 * back. Afterwards every client must agree with the server. The seed decides who does what and what breaks.
 */
export async function chaos(options: ChaosOptions): Promise<{ messages: number; faults: number }> {
  const { seed, log } = options;
  const random = seeded(seed);
  const world = await startWorld(options.nodes, log);
  const actors: Actor[] = [];
  try {
    const cids = await prepare(world, options.clients, random);
    for (let i = 0; i < options.clients; i++) {
      const own = random.fork();
      const proxy = await startProxy(() => {
        const ports = world.ports();
        return ports.length > 0 ? own.pick(ports) : null;
      }, own);
      actors.push(createActor(`user-${i}`, secretKey, proxy, own));
    }
    await Promise.all(actors.map((a) => a.client.connect()));
    for (const actor of actors)
      actor.conversations = cids
        .filter((c) => c.members.includes(actor.userId))
        .map((c) => actor.client.conversations.open(c.id));

    const until = Date.now() + options.seconds * 1_000;
    const { soak } = options;
    let kills = 0;
    const acknowledged = (): number => {
      let count = 0;
      for (const actor of actors) for (const list of actor.acknowledged.values()) count += list.length;
      return count;
    };
    const over = (): boolean =>
      soak ? kills >= soak.kills && acknowledged() >= soak.messages : Date.now() >= until;
    const talking = actors.map(async (actor) => {
      const own = random.fork();
      while (!over()) {
        act(actor, own);
        await pause(options.actMs * (0.5 + own.next()));
      }
    });
    const faults = soak
      ? await killNodes(world, random.fork(), over, () => {
          kills++;
          if (kills % 10 === 0) log(`${kills} kills, ${acknowledged()} messages acknowledged`);
        })
      : await breakThings(world, actors, random.fork(), until, options.faultMs);
    await Promise.all(talking);

    for (const actor of actors) actor.proxy.heal();
    await world.whole();
    log(`settling after ${faults} faults`);
    await settled(actors);
    assert.deepEqual(world.crashes, []);
    const messages = await verify(actors, cids, `http://127.0.0.1:${world.ports()[0]}`, secretKey);
    return { messages, faults };
  } finally {
    for (const actor of actors) {
      actor.client.disconnect();
      await actor.proxy.close();
    }
    await world.dispose();
  }
}

interface Group {
  id: string;
  members: string[];
}

/** Everybody is in the first group and in a few others. */
async function prepare(world: World, clients: number, random: Random): Promise<Group[]> {
  const url = `http://127.0.0.1:${world.ports()[0]}`;
  const users = Array.from({ length: clients }, (_, i) => `user-${i}`);
  const groups: Group[] = [];
  for (let i = 0; i < Math.max(3, clients / 4); i++) {
    const members = i === 0 ? users : users.filter(() => random.chance(0.3));
    if (members.length < 2) continue;
    const response = await fetch(`${url}/v1/conversations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'group', members, name: `group ${i}` }),
    });
    if (response.status !== 201) throw new Error(`no group: ${await response.text()}`);
    groups.push({ id: ((await response.json()) as { id: string }).id, members });
  }
  return groups;
}

async function breakThings(
  world: World,
  actors: Actor[],
  random: Random,
  until: number,
  everyMs: number,
): Promise<number> {
  let faults = 0;
  while (Date.now() < until) {
    await pause(everyMs * (0.5 + random.next()));
    const { proxy } = random.pick(actors);
    const what = random.next();
    faults++;
    if (what < 0.3) proxy.cut();
    else if (what < 0.45) proxy.halfClose();
    else if (what < 0.6) proxy.stall(random.int(3_000));
    else if (what < 0.75) proxy.delay(random.int(200));
    else if (what < 0.85) void world.killNode(random.int(world.nodes));
    else if (what < 0.93) void world.killRedis();
    else void world.killPostgres();
  }
  return faults;
}

/** One node after the other; the next when it is back. */
async function killNodes(
  world: World,
  random: Random,
  over: () => boolean,
  killed: () => void,
): Promise<number> {
  let kills = 0;
  for (; !over(); kills++) {
    await pause(1_000 + random.int(4_000));
    await world.killNode(random.int(world.nodes));
    killed();
  }
  return kills;
}

/** Every client is connected and has nothing on its way. */
async function settled(actors: Actor[]): Promise<void> {
  const busy = () =>
    actors.filter(
      (a) =>
        a.client.state !== 'connected' ||
        a.conversations.some((c) => {
          const { items, status } = c.messages.get();
          return status !== 'ready' || items.some((i) => i.status === 'pending');
        }),
    );
  const deadline = Date.now() + settleMs;
  while (busy().length > 0) {
    if (Date.now() > deadline)
      throw new Error(
        `not settled: ${busy()
          .map((a) => `${a.userId} ${a.client.state}`)
          .join(', ')}`,
      );
    await pause(50);
  }
}
