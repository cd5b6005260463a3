import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from '../../../../client/test/chaos/random.ts';
import type { Random } from '../../../../client/test/chaos/random.ts';
import { startWorld } from '../../../../client/test/chaos/world.ts';
import type { World } from '../../../../client/test/chaos/world.ts';
import { environmentOf, startCustomer } from './customers.ts';
import type { Customer, EngineName } from './customers.ts';
import { openLedger, talk } from './ledger.ts';
import { administers, asks } from './service.ts';
import { openStore, placeOf } from './store.ts';
import type { Store } from './store.ts';
import { drained, verify } from './verify.ts';
import type { Scene } from './verify.ts';

export interface StorageChaosOptions {
  seed: number;
  engines: readonly EngineName[];
  nodes: number;
  /** Whether history moves between databases and back, and customers restore backups. */
  moves: boolean;
  /** How long everybody talks while things break. */
  seconds: number;
  /** Pause between two acts of one person, and between two faults of one kind. */
  actMs: number;
  faultMs: number;
  log: (line: string) => void;
}

export interface StorageOutcome {
  faults: number;
  acknowledged: number;
  changes: number;
  pages: number;
  unavailable: number;
  /** Messages that customers' own restores lost. */
  givenUp: number;
  /** Messages that only the customers' databases had at the end. */
  cold: number;
}

/** One customer during the run. */
interface Play extends Scene {
  /** Messages that a restored backup lost, until a resync was accepted. */
  lost: Set<string> | null;
}

const dayMs = 86_400_000;
/** How far a node's clock is from the store's while it is wrong. */
const clocks = [-2, 2, 2, 5].map((days) => days * dayMs);
/** How often old messages are looked for; once a minute otherwise. */
const pruneMs = 300;
const resyncMs = 20_000;

/**
 * Environments with databases of their own, while these, the ways to them, our nodes, our store and the clocks have faults, and while
 * history moves between databases and back. Afterwards all is as it was acknowledged. The seed decides who does what and what breaks.
 */
export async function storageChaos(options: StorageChaosOptions): Promise<StorageOutcome> {
  const { log } = options;
  const random = seeded(options.seed);
  const customers: Customer[] = [];
  const offsets = random.fork();
  const world = await startWorld(options.nodes, log, {
    killLast: true,
    env: () => ({
      CHAT_ALLOW_PRIVATE_TARGETS: 'true',
      CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(options.engines.map(environmentOf)),
      NODE_OPTIONS: `--import=${new URL('./shifted-clock.ts', import.meta.url).href}`,
      TEST_CLOCK_AHEAD_MS: String(offsets.pick(clocks)),
    }),
  });
  try {
    const store = openStore(world.store);
    const plays: Play[] = [];
    for (const engine of options.engines) {
      const customer = await startCustomer(engine, random.fork());
      customers.push(customer);
      plays.push(await begin(world, customer, random.fork()));
    }
    const until = Date.now() + options.seconds * 1_000;
    const over = () => Date.now() >= until;
    let faults = 0;
    const tell = (line: string): void => {
      faults++;
      log(line);
    };
    const again = async (own: Random, act: () => Promise<void>): Promise<void> => {
      while (!over()) {
        await delay(options.faultMs * (0.5 + own.next()));
        if (!over()) await act();
      }
    };
    const pruning = async (env: string): Promise<void> => {
      // The store may be away for a moment.
      for (; !over(); await delay(pruneMs)) await store.lookForOld(env).catch(() => undefined);
    };
    const { heal, ...nodes } = breakNodes(world, random.fork(), tell);
    await Promise.all([
      ...plays.flatMap((play) => {
        const [servers, ways, switches] = [random.fork(), random.fork(), random.fork()];
        return [
          talk(play.ledger, play.ask, random.fork(), options.actMs, over),
          again(servers, () => breakServer(play, store, servers, options.moves, tell)),
          again(ways, () => breakWay(play, ways, tell)),
          again(switches, () => change(play, store, switches, options.moves, tell)),
          pruning(play.customer.env.id),
        ];
      }),
      again(random.fork(), nodes.act),
    ]);

    await world.whole();
    heal();
    for (const { customer } of plays) for (const { proxy } of Object.values(customer.places)) proxy.heal();
    log(`healed after ${faults} faults`);
    const problems = [...world.crashes];
    let cold = 0;
    for (const play of plays) {
      // Refused only while history is being copied.
      if (play.lost) {
        await store.hurry(play.customer.env.id);
        await drained(play);
        await resynced(play, store);
      }
      if (play.lost) problems.push(`${play.customer.env.id}: no resync is accepted`);
      const verified = await verify(play, store, log);
      problems.push(...verified.problems);
      cold += verified.cold;
    }
    if (problems.length > 0) throw new Error(`with --seed ${options.seed}:\n${problems.join('\n')}`);
    const sum = (of: (play: Play) => number): number => plays.map(of).reduce((a, b) => a + b, 0);
    return {
      faults,
      acknowledged: sum(({ ledger }) => ledger.counts.sends),
      changes: sum(
        ({ ledger: { counts } }) => counts.edits + counts.deletes + counts.members + counts.renames,
      ),
      pages: sum(({ ledger }) => ledger.counts.pages),
      unavailable: sum(({ ledger }) => ledger.counts.unavailable),
      cold,
      givenUp: sum(({ ledger }) => [...ledger.entries.values()].filter((e) => e.isGivenUp).length),
    };
  } finally {
    await world.dispose();
    for (const customer of customers) await customer.stop();
  }
}

/** Own storage from the start, with the second slot filled too. */
async function begin(world: World, customer: Customer, random: Random): Promise<Play> {
  const ask = asks(world, customer.env.secretKey, random.fork());
  const admin = administers(world, customer.env.id, random.fork());
  const ledger = await openLedger(ask);
  await customer.places.a.enter(admin, 'a');
  const on = await admin('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
  if (on.status !== 200) throw new Error(JSON.stringify(on.body));
  await customer.places.b.enter(admin, 'b');
  for (const place of Object.values(customer.places)) await place.backUp();
  return { customer, ask, admin, ledger, lost: null };
}

type Tell = (line: string) => void;

/** Something happens to the customer's server, and ends after a while. */
async function breakServer(
  play: Play,
  store: Store,
  random: Random,
  moves: boolean,
  tell: Tell,
): Promise<void> {
  const { customer } = play;
  const backups = moves ? ['backup', 'backup', 'restore'] : [];
  const what = random.pick([...Object.keys(customer.faults), ...backups]);
  const place = customer.places[random.pick(['a', 'b'] as const)];
  const ms = 1_000 + random.int(12_000);
  if (what === 'backup') {
    tell(`${customer.engine}: backup`);
    return place.backUp();
  }
  if (what === 'restore') {
    tell(`${customer.engine}: an older backup is restored`);
    place.closed = true;
    place.proxy.cut();
    const lost = await place.restore();
    place.closed = false;
    play.lost = new Set([...(play.lost ?? []), ...lost]);
    for (const deadline = Date.now() + resyncMs; play.lost && Date.now() < deadline; await delay(500))
      await resynced(play, store);
    return undefined;
  }
  tell(`${customer.engine}: ${what} for ${ms} ms`);
  const end = await customer.faults[what as keyof Customer['faults']]();
  await delay(ms);
  await end();
  return undefined;
}

/**
 * docs/storage.md, Repair: asks for a resync after a backup was restored. When it is accepted, what is in the buffer is written again;
 * what had left it, and is not in the backup, nobody has any more.
 */
async function resynced(play: Play, store: Store): Promise<void> {
  const { admin, customer, ledger } = play;
  const { status } = await admin('POST', '/v1/storage/database/resync');
  if (status !== 202 && (await admin('GET', '/v1/storage')).body.mode !== 'managed') return;
  const cold = await store.cold(customer.env.id);
  for (const id of play.lost!) {
    const entry = ledger.entries.get(id);
    if (entry && cold.has(placeOf(entry.conversation, entry.seq))) entry.isGivenUp = true;
  }
  play.lost = null;
}

/** Something happens on the way to a database. */
async function breakWay({ customer }: Play, random: Random, tell: Tell): Promise<void> {
  const slot = random.pick(['a', 'b'] as const);
  const { proxy } = customer.places[slot];
  const what = random.pick(['cut', 'lossy', 'lossy', 'slow', 'stalled'] as const);
  const ms = 1_000 + random.int(12_000);
  tell(`${customer.engine}: the way to slot ${slot} is ${what}${what === 'cut' ? '' : ` for ${ms} ms`}`);
  if (what === 'cut') return proxy.cut();
  if (what === 'lossy') proxy.lose(0.03);
  else if (what === 'slow') proxy.delay(20 + random.int(1_500));
  else proxy.stall(ms);
  await delay(ms);
  proxy.heal();
}

/** The owner changes something, or time passes. What is refused at the moment is left. */
async function change(play: Play, store: Store, random: Random, moves: boolean, tell: Tell): Promise<void> {
  const { customer, admin } = play;
  const dice = random.next();
  const slot = random.pick(['a', 'b'] as const);
  if (!moves || dice < 0.5) {
    tell(`${customer.engine}: two days pass`);
    return store.age(customer.env.id).catch((error: unknown) => tell(`they do not: ${String(error)}`));
  }
  const asked = async (what: string, method: string, path: string, body?: object): Promise<void> => {
    const { status } = await admin(method, path, body);
    tell(`${customer.engine}: ${what}: ${status}`);
  };
  if (dice < 0.6) return asked('back to managed', 'PATCH', '/v1/storage', { mode: 'managed' });
  if (dice < 0.75) return asked('to an own database', 'PATCH', '/v1/storage', { mode: 'byo_db' });
  if (dice < 0.9) return asked(`to slot ${slot}`, 'POST', `/v1/storage/database/promote/${slot}`);
  return asked('resync', 'POST', '/v1/storage/database/resync');
}

/** Something happens to us. */
function breakNodes(world: World, random: Random, tell: Tell): { act(): Promise<void>; heal(): void } {
  const wrong = new Set<number>();
  const flip = (pid: number): void => {
    if (!wrong.delete(pid)) wrong.add(pid);
    process.kill(pid, 'SIGUSR2');
  };
  const running = () => world.services().map((s) => ({ pid: s.process.pid!, env: s.env }));
  return {
    async act() {
      const dice = random.next();
      const index = random.int(world.nodes);
      if (dice < 0.35) {
        tell(`node ${index} is killed`);
        await world.killNode(index);
      } else if (dice < 0.45) {
        tell('our store is killed');
        await world.killPostgres();
      } else {
        const nodes = running();
        if (nodes.length === 0) return;
        const { pid, env } = random.pick(nodes);
        flip(pid);
        const days = Number(env['TEST_CLOCK_AHEAD_MS']) / dayMs;
        tell(wrong.has(pid) ? `a node’s clock jumps ${days} days` : 'a node’s clock is right again');
      }
    },
    heal() {
      const pids = new Set(running().map(({ pid }) => pid));
      for (const pid of wrong) if (pids.has(pid)) flip(pid);
    },
  };
}
