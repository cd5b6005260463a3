import type { Clock } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { CountsByKey } from '../flow/counts-by-key.ts';
import { createPeriodic } from '../flow/periodic.ts';
import { present, runScript } from '../redis.ts';
import type { RedisConnection } from '../redis.ts';
import type { Lost, PresenceRegistry, SessionRef, UserRef } from './port.ts';
import { createRedisLease, clearLease } from './redis-lease.ts';
import { endGraceScript, keyOf, listKey, openKey, refOfKey, userKeys } from './redis-scripts.ts';
import { refOfMember, createRedisSockets } from './redis-sockets.ts';
import type { Entry } from './redis-sockets.ts';

/** What this node itself knows about a user, which is all there is while Redis is unreachable. */
interface LocalUser {
  env: number;
  /** Sessions in the order in which they were opened. */
  sessions: Entry[];
  graceUntil: number;
  /** True if Redis was away when the last socket closed, so that it knows of no grace period to settle. */
  unrecorded: boolean;
}

const chunk = 500;
const unlimited = 1_000_000;

/**
 * A node's sockets are registered in Redis under its lease `<node>#<generation>`, and the lease lists their users, so
 * that any other node can clear them. After every loss of Redis or of the lease the node begins a new generation,
 * registers its sockets under it and ends the one before. This corrects whatever Redis forgot, kept or missed.
 */
export function redisPresence(options: {
  connection: RedisConnection;
  /** For this node's own timing; what nodes share is timed by Redis. */
  clock: Clock;
  /** Unique among the nodes, without '#' and '|'. */
  node: string;
  graceMs: number;
  logger: Logger;
  leaseMs?: number;
  /** Milliseconds between renewals of the lease, at which ended leases are also looked for. */
  beatMs?: number;
}): PresenceRegistry {
  const { connection, clock, node: own, graceMs, logger, leaseMs = 30_000, beatMs = 1_000 } = options;
  const { client } = connection;
  const users = new Map<string, LocalUser>();
  const counts = new CountsByKey<number>();
  /** Sockets to be registered under the present lease, or to be removed. */
  const dirty = new Set<Entry>();
  const onRenew = (): void => {
    for (const { sessions } of users.values()) for (const entry of sessions) dirty.add(entry);
  };
  const lease = createRedisLease({ connection, clock, node: own, leaseMs, logger, onRenew });
  const sockets = createRedisSockets(connection, lease, graceMs);
  const deadNodeListeners: ((lost: Lost) => void)[] = [];
  let working: Promise<void> | undefined;
  let backListener: ((users: UserRef[]) => void) | undefined;
  let reachableListener: (() => void) | undefined;

  function drop(key: string, session: string): Entry | undefined {
    const user = users.get(key);
    const at = user?.sessions.findIndex((entry) => entry.session === session) ?? -1;
    if (!user || at < 0) return undefined;
    const [entry] = user.sessions.splice(at, 1);
    entry!.closed = true;
    dirty.delete(entry!);
    counts.add(user.env, -1);
    return entry;
  }

  /** The socket may be registered in Redis and could not be removed; that is done later. */
  function forget(entry: Entry): void {
    if (entry.tried !== '') dirty.add(entry);
  }

  async function unlist(key: string): Promise<void> {
    if (users.get(key)?.sessions.length !== 0) return;
    users.delete(key);
    await client.srem(listKey(lease.name), key);
  }

  const reconnected = (): void => {
    // Before the first lease nobody here was told anything.
    if (lease.begun) {
      lease.renew();
      reachableListener?.();
    }
    tick().catch(() => undefined);
  };

  async function tick(): Promise<void> {
    if (client.status !== 'ready') return;
    try {
      await lease.beat();
      if (!lease.begun) await lease.beat();
      working ??= work().finally(() => (working = undefined));
    } catch (error) {
      logger.debug({ err: error }, 'the presence lease was not renewed');
    }
  }

  async function work(): Promise<void> {
    try {
      await repair();
      for (const ended of lease.ended) {
        for await (const lost of clearLease(connection, ended))
          for (const listener of deadNodeListeners) listener(lost);
        lease.ended.delete(ended);
        // There may be more, and clearing a long list must not cost this node its own lease.
        await lease.beat();
      }
    } catch (error) {
      logger.debug({ err: error }, 'presence could not be repaired yet');
    }
  }

  async function repair(): Promise<void> {
    const former = [...lease.former];
    while (dirty.size > 0) {
      const entries = [...dirty].slice(0, chunk);
      const came = await Promise.all(entries.map((entry) => repairEntry(entry)));
      const back = entries.filter((_, i) => came[i]).map(({ key }) => refOfKey(key));
      if (back.length > 0) backListener?.(back);
    }
    for (const name of former) {
      await lease.end(name, 0);
      lease.former.delete(name);
    }
  }

  /** Returns true if the user came online only by this. */
  async function repairEntry(entry: Entry): Promise<boolean> {
    let came = false;
    await entry.pending;
    if (entry.closed) await sockets.takeOut(entry);
    else if (entry.lease !== lease.name) {
      const registering = sockets.register(entry, unlimited, null);
      entry.pending = registering.catch(() => (entry.isUnconfirmed = true));
      came = ((await registering).cameOnline || entry.isUnconfirmed) && !entry.closed;
      entry.isUnconfirmed = false;
    }
    if (entry.closed || entry.lease === lease.name) dirty.delete(entry);
    return came;
  }

  const isOnline = (user: LocalUser | undefined): boolean =>
    user !== undefined && (user.sessions.length > 0 || user.graceUntil > clock.monotonic());
  const onlineEverywhere = (refs: readonly UserRef[]): Promise<boolean[] | null> =>
    sockets.exist(refs, 2).catch(() => null);

  client.on('ready', reconnected);
  if (connection.isCluster) client.on('+node', reconnected);
  const periodic = createPeriodic(beatMs, logger, 'presence', tick);
  periodic.start();

  return {
    async add(ref, session, maxSockets, ceiling = null) {
      const key = keyOf(ref);
      let user = users.get(key);
      const wasOnline = isOnline(user);
      if (!user) users.set(key, (user = { env: ref.env, sessions: [], graceUntil: 0, unrecorded: false }));
      const entry: Entry = {
        key,
        session,
        openedAt: '',
        tried: '',
        lease: '',
        closed: false,
        isUnconfirmed: false,
        pending: Promise.resolve(),
      };
      user.sessions.push(entry);
      user.unrecorded = false;
      counts.add(ref.env, 1);
      const registering = sockets.register(entry, maxSockets, ceiling);
      entry.pending = registering.catch(() => undefined);
      try {
        const { refused, cameOnline, evicted, connections } = await registering;
        if (entry.lease !== lease.name && !entry.closed) dirty.add(entry);
        const evict = evicted.map(refOfMember);
        for (const { node, id } of evict) if (node === own) drop(key, id);
        if (refused) {
          drop(key, session);
          if (!wasOnline) await unlist(key);
        }
        return { refused, evict, cameOnline, connections };
      } catch {
        // Redis is unreachable: what this node itself knows decides.
        const leaving = Math.max(0, user.sessions.length - maxSockets);
        const connections = counts.of(ref.env) - leaving;
        if (ceiling !== null && connections > ceiling) {
          drop(key, session);
          forget(entry);
          return { refused: true, evict: [], cameOnline: false, connections: connections - 1 };
        }
        entry.openedAt ||= String(clock.now() * 1_000);
        if (!entry.closed) dirty.add(entry);
        const evict: SessionRef[] = [];
        while (user.sessions.length > maxSockets) {
          const oldest = user.sessions[0]!;
          drop(key, oldest.session);
          forget(oldest);
          evict.push({ node: own, id: oldest.session });
        }
        return { refused: false, evict, cameOnline: !wasOnline, connections };
      }
    },
    async remove(ref, session) {
      const key = keyOf(ref);
      const entry = drop(key, session);
      if (!entry) return { last: false };
      const user = users.get(key)!;
      const here = user.sessions.length === 0;
      if (here) user.graceUntil = clock.monotonic() + graceMs;
      await entry.pending;
      try {
        const last = await sockets.takeOut(entry);
        if (!last) await unlist(key);
        return { last };
      } catch {
        forget(entry);
        user.unrecorded = here;
        return { last: here };
      }
    },
    async endGrace(ref) {
      const key = keyOf(ref);
      // The caller's wait may have begun slightly before the grace period in Redis.
      const slack = Math.min(1_000, graceMs / 4);
      const user = users.get(key);
      const here = user?.sessions.length === 0 && user.graceUntil <= clock.monotonic() + slack;
      try {
        const args = [slack, here ? lease.name : '', here && user.unrecorded ? '1' : ''];
        const settled = (await runScript(connection, endGraceScript, userKeys(key), args)) === 1;
        if (settled || here) await unlist(key);
        return settled;
      } catch {
        if (here) users.delete(key);
        return here;
      }
    },
    online: async (refs) =>
      (await onlineEverywhere(refs)) ?? refs.map((ref) => isOnline(users.get(keyOf(ref)))),
    onlineEverywhere,
    connected: (refs) =>
      sockets
        .exist(refs, 1)
        .catch(() => refs.map((ref) => (users.get(keyOf(ref))?.sessions.length ?? 0) > 0)),
    async connections(env) {
      try {
        return await present(connection).scard(openKey(env));
      } catch {
        return counts.of(env);
      }
    },
    onDeadNode: (listener) => void deadNodeListeners.push(listener),
    onBack: (listener) => (backListener = listener),
    onReachable: (listener) => (reachableListener = listener),
    /** The lease keeps running for users whose grace period this node began; after its end another node settles them. */
    async close() {
      client.removeListener('ready', reconnected);
      client.removeListener('+node', reconnected);
      await periodic.stop();
      await working;
      try {
        if (lease.begun) await lease.end(lease.name, users.size > 0 ? graceMs : 0);
      } catch {
        // The lease ends by itself.
      }
    },
  };
}
