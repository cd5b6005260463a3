import assert from 'node:assert/strict';
import { WebSocket } from 'ws';
import { environments } from '../../../server/test/support/service.ts';
import { act, createActor } from './actor.ts';
import type { Actor } from './actor.ts';
import type { ClientOptions } from '../../src/index.ts';
import { startProxy } from './proxy.ts';
import { seeded } from './random.ts';
import type { Random } from './random.ts';
import { verify } from './verify.ts';
import type { Verified } from './verify.ts';
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
  /** Instead: until so many nodes were killed, evenly over so many acknowledged messages. */
  soak?: { kills: number; messages: number };
  log: (line: string) => void;
}

const { secretKey } = environments.dev;
/** Takes less of the processor than Node's own: for whoever counts to a million. */
const FastSocket = WebSocket as unknown as ClientOptions['WebSocket'];
const settleMs = 90_000;
/** Of one client: what waits for its acknowledgement, at most. */
const maxUnanswered = 50;
/** In a soak a conversation is small, or the clients here would do little but hear of each other. */
const soakMembers = 3;
/** One in so many clients has its conversations open. */
const soakWatchers = 5;
/** So long without any acknowledgement is a failure. */
const standstillMs = 120_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface Outcome extends Verified {
  faults: number;
  acknowledged: number;
}

/**
 * Real SDK clients through proxies that delay, stall, cut and half-close, while nodes, Redis and PostgreSQL are killed and come
 * back. Afterwards every client must agree with the server. The seed decides who does what and what breaks.
 */
export async function chaos(options: ChaosOptions): Promise<Outcome> {
  const { seed, log } = options;
  const random = seeded(seed);
  const world = await startWorld(options.nodes, log);
  const actors: Actor[] = [];
  try {
    const { soak } = options;
    const cids = await prepare(
      world,
      soak ? smallGroups(options.clients, random) : groups(options.clients, random),
    );
    for (let i = 0; i < options.clients; i++) {
      const own = random.fork();
      const proxy = await startProxy(() => {
        const ports = world.ports();
        return ports.length > 0 ? own.pick(ports) : null;
      }, own);
      actors.push(createActor(`user-${i}`, secretKey, proxy, own, soak ? FastSocket : undefined));
    }
    await Promise.all(actors.map((a) => a.client.connect()));
    for (const [i, actor] of actors.entries()) {
      actor.cids = cids.filter((c) => c.members.includes(actor.userId)).map((c) => c.id);
      // To follow a window costs more than to send: in a soak some do.
      if (!soak || i % soakWatchers === 0)
        actor.conversations = actor.cids.map((id) => actor.client.conversations.open(id));
    }

    const until = Date.now() + options.seconds * 1_000;
    let acknowledged = 0;
    for (const actor of actors) actor.client.on('sent', () => acknowledged++);
    let killing = true;
    const over = (): boolean => (soak ? !killing : Date.now() >= until);
    const talking = actors.map(async (actor) => {
      const own = random.fork();
      while (!over()) {
        if (actor.said - actor.heard < maxUnanswered) act(actor, own, soak ? 0.95 : 0.7);
        await pause(options.actMs * (0.5 + own.next()));
      }
    });
    const faults = soak
      ? await killNodes(world, random.fork(), soak, () => acknowledged, log).finally(() => (killing = false))
      : await breakThings(world, actors, random.fork(), until, options.faultMs);
    await Promise.all(talking);

    for (const actor of actors) actor.proxy.heal();
    await world.whole();
    log(`settling after ${faults} faults`);
    await settled(actors);
    assert.deepEqual(world.crashes, []);
    const verified = await verify(actors, cids, `http://127.0.0.1:${world.ports()[0]}`, secretKey);
    return { ...verified, acknowledged, faults };
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

const users = (count: number): string[] => Array.from({ length: count }, (_, i) => `user-${i}`);

/** Everybody is in the first group and in a few others. */
function groups(clients: number, random: Random): string[][] {
  const all = users(clients);
  const some = Array.from({ length: Math.ceil(Math.max(3, clients / 4)) - 1 }, () =>
    all.filter(() => random.chance(0.3)),
  );
  return [all, ...some.filter((members) => members.length > 1)];
}

/** Everybody is in two. */
function smallGroups(clients: number, random: Random): string[][] {
  const found: string[][] = [];
  for (const left of [users(clients), users(clients)])
    while (left.length > 0)
      found.push(
        Array.from(
          { length: Math.min(soakMembers, left.length) },
          () => left.splice(random.int(left.length), 1)[0]!,
        ),
      );
  return found;
}

async function prepare(world: World, wanted: string[][]): Promise<Group[]> {
  const url = `http://127.0.0.1:${world.ports()[0]}`;
  const made: Group[] = [];
  for (const [i, members] of wanted.entries()) {
    const response = await fetch(`${url}/v1/conversations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'group', members, name: `group ${i}` }),
    });
    if (response.status !== 201) throw new Error(`no group: ${await response.text()}`);
    made.push({ id: ((await response.json()) as { id: string }).id, members });
  }
  return made;
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

/** One node after the other, the next when it is back and its share of the messages was acknowledged; answers after the last share. */
async function killNodes(
  world: World,
  random: Random,
  soak: { kills: number; messages: number },
  acknowledged: () => number,
  log: (line: string) => void,
): Promise<number> {
  const share = soak.messages / soak.kills;
  for (let kills = 0; ;) {
    let [before, since] = [acknowledged(), Date.now()];
    while (acknowledged() < kills * share) {
      await pause(100 + random.int(900));
      if (acknowledged() > before) [before, since] = [acknowledged(), Date.now()];
      if (Date.now() - since > standstillMs)
        throw new Error(`nothing was acknowledged for ${standstillMs} ms`);
    }
    if (kills === soak.kills) return kills;
    await pause(random.int(1_000));
    await world.killNode(random.int(world.nodes));
    if (++kills % 10 === 0) log(`${kills} kills, ${acknowledged()} messages acknowledged`);
  }
}

/** Every client is connected and has nothing on its way. */
async function settled(actors: Actor[]): Promise<void> {
  /** What a client still waits for; empty when nothing. */
  const waiting = ({ client, conversations, said, heard, failed, changing }: Actor): string[] => [
    ...(client.state === 'connected' ? [] : [client.state]),
    ...(said === heard + failed.length ? [] : [`${heard} of ${said} acknowledged`]),
    ...(changing === 0 ? [] : [`${changing} edits and deletes without an answer`]),
    ...conversations.flatMap((c) => {
      const { items, status } = c.messages.get();
      const pending = items.filter((i) => i.status === 'pending').length;
      if (status === 'ready' && pending === 0) return [];
      return [`${c.id}: ${status}, ${pending} of ${items.length} pending`];
    }),
  ];
  const busy = () => actors.filter((a) => waiting(a).length > 0);
  let before = '';
  for (let deadline = 0; busy().length > 0; await pause(50)) {
    const now = busy()
      .map((a) => `${a.userId} ${waiting(a).join('; ')}`)
      .join('\n');
    // On a busy machine it takes long; as long as something moves, it is waited for.
    if (now !== before) deadline = Date.now() + settleMs;
    if (Date.now() > deadline)
      throw new Error(
        `not settled: ${now}\n${busy()
          .flatMap((a) => [...a.failed, ...a.errors, ...a.wire])
          .join('\n')}`,
      );
    before = now;
  }
}
