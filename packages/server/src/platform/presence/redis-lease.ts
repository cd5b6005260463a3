import type { Clock } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { runScript } from '../redis.ts';
import type { RedisConnection } from '../redis.ts';
import type { Lost } from './port.ts';
import {
  beatScript,
  endScript,
  leaseKeys,
  listKey,
  openKey,
  reapScript,
  refOfKey,
  userKeys,
} from './redis-scripts.ts';

const chunk = 500;

export type RedisLease = ReturnType<typeof createRedisLease>;

/** A node's sign of life, named `<node>#<generation>`; if it is not renewed, another node clears it. */
export function createRedisLease(options: {
  connection: RedisConnection;
  clock: Clock;
  node: string;
  leaseMs: number;
  logger: Logger;
  /** Called with each new generation. */
  onRenew: () => void;
}) {
  const { connection, clock, node, leaseMs, logger } = options;
  /** Earlier generations of this node, which end when nothing is registered under them any more. */
  const former = new Set<string>();
  /** Leases that have ended and that this node took over to clear. */
  const ended = new Set<string>();
  let generation = 0;
  const nextName = (): string => `${node}#${clock.now().toString(36)}.${generation++}`;
  let name = nextName();
  let begun = false;
  let surelyUntil = 0;
  let beating: Promise<void> | undefined;

  function renew(): void {
    former.add(name);
    name = nextName();
    begun = false;
    surelyUntil = 0;
    options.onRenew();
  }

  async function beatOnce(): Promise<void> {
    const asked = name;
    const sentAt = clock.monotonic();
    const reply = await runScript(connection, beatScript, leaseKeys, [asked, leaseMs, begun ? '' : '1']);
    const [runs, over] = reply as [number, string];
    if (over !== '') ended.add(over);
    if (asked !== name) return;
    if (runs === 1) {
      begun = true;
      surelyUntil = sentAt + leaseMs * (2 / 3);
    } else {
      logger.warn('the presence lease had ended; the sockets are registered again');
      renew();
    }
  }
  const beat = (): Promise<void> => (beating ??= beatOnce().finally(() => (beating = undefined)));

  return {
    former,
    ended,
    renew,
    beat,
    get name() {
      return name;
    },
    get begun() {
      return begun;
    },
    /** Returns the lease to register under: one that certainly still runs. */
    async hold(): Promise<string> {
      if (clock.monotonic() >= surelyUntil) await beat();
      if (clock.monotonic() >= surelyUntil) throw new Error('no lease');
      return name;
    },
    end: (lease: string, inMs: number) => runScript(connection, endScript, leaseKeys, [lease, inMs, leaseMs]),
  };
}

/**
 * Clears a lease that has ended, and yields what was registered under it. Doing it twice, or partly and then again,
 * does no harm.
 */
export async function* clearLease(connection: RedisConnection, lease: string): AsyncGenerator<Lost> {
  const { client } = connection;
  const envs = new Set<number>();
  for await (const keys of scan(connection, listKey(lease))) {
    const taken = (await Promise.all(
      keys.map((key) => runScript(connection, reapScript, userKeys(key), [lease])),
    )) as [number, ...string[]][];
    const refs = keys.map(refOfKey);
    for (const { env } of refs) envs.add(env);
    yield {
      sessions: refs.flatMap((ref, i) =>
        taken[i]!.slice(1).map((session) => ({ ...ref, session: String(session) })),
      ),
      offline: refs.filter((_, i) => taken[i]![0] === 1),
    };
  }
  // Also entries of which nothing else was written, because the node died in between.
  for (const env of envs)
    for await (const members of scan(connection, openKey(env))) {
      const gone = members.filter((member) => member.endsWith(`|${lease}`));
      if (gone.length > 0) await client.srem(openKey(env), ...gone);
    }
  await client.del(listKey(lease));
  await client.zrem(leaseKeys[1], lease);
}

/** The members of a set, in portions. */
async function* scan({ client }: RedisConnection, key: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, members] = await client.sscan(key, cursor, 'COUNT', chunk);
    yield members;
    cursor = next;
  } while (cursor !== '0');
}
