import type { Clock } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { CountsByKey } from '../flow/counts-by-key.ts';
import { createPeriodic } from '../flow/periodic.ts';
import type { Periodic } from '../flow/periodic.ts';
import type { RedisConnection } from '../redis.ts';
import type { Added, Lost, PresenceRegistry, SessionRef, UserRef } from './port.ts';
import { RedisLease, clearLease } from './redis-lease.ts';
import { endGraceScript, listKey, openKey, userKeys } from './redis-scripts.ts';
import { keyOf, refOfKey, refOfMember, createRedisSockets } from './redis-sockets.ts';
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

export interface RedisPresenceOptions {
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
}

const chunk = 500;
const unlimited = 1_000_000;

/**
 * A node's sockets are registered in Redis under its lease `<node>#<generation>`, and the lease lists their users, so
 * that any other node can clear them. After every loss of Redis or of the lease the node begins a new generation,
 * registers its sockets under it and ends the one before. This corrects whatever Redis forgot, kept or missed.
 */
export class RedisPresence implements PresenceRegistry {
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #graceMs: number;
  readonly #logger: Logger;
  readonly #periodic: Periodic;
  readonly #users = new Map<string, LocalUser>();
  readonly #counts = new CountsByKey<number>();
  /** Sockets to be registered under the present lease, or to be removed. */
  readonly #dirty = new Set<Entry>();
  readonly #lease: RedisLease;
  readonly #sockets: ReturnType<typeof createRedisSockets>;
  #working: Promise<void> | undefined;
  readonly #deadNodeListeners: ((lost: Lost) => void)[] = [];
  #backListener: ((users: UserRef[]) => void) | undefined;
  #reachableListener: (() => void) | undefined;

  constructor(options: RedisPresenceOptions) {
    this.#connection = options.connection;
    this.#clock = options.clock;
    this.#node = options.node;
    this.#graceMs = options.graceMs;
    this.#logger = options.logger;
    this.#lease = new RedisLease({ ...options, leaseMs: options.leaseMs ?? 30_000 });
    this.#sockets = createRedisSockets(this.#connection, this.#lease, this.#graceMs);
    this.#lease.onRenew = () => {
      for (const { sessions } of this.#users.values()) for (const entry of sessions) this.#dirty.add(entry);
    };
    this.#connection.client.on('ready', this.#reconnected);
    if (this.#connection.isCluster) this.#connection.client.on('+node', this.#reconnected);
    this.#periodic = createPeriodic(options.beatMs ?? 1_000, options.logger, 'presence', () => this.#tick());
    this.#periodic.start();
  }

  async add(
    ref: UserRef,
    session: string,
    maxSockets: number,
    ceiling: number | null = null,
  ): Promise<Added> {
    const key = keyOf(ref);
    let user = this.#users.get(key);
    const wasOnline =
      user !== undefined && (user.sessions.length > 0 || user.graceUntil > this.#clock.monotonic());
    if (!user)
      this.#users.set(key, (user = { env: ref.env, sessions: [], graceUntil: 0, unrecorded: false }));
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
    this.#counts.add(ref.env, 1);
    const registering = this.#sockets.register(entry, maxSockets, ceiling);
    entry.pending = registering.catch(() => undefined);
    try {
      const { refused, cameOnline, evicted, connections } = await registering;
      if (entry.lease !== this.#lease.name && !entry.closed) this.#dirty.add(entry);
      const evict = evicted.map(refOfMember);
      for (const { node, id } of evict) if (node === this.#node) this.#drop(key, id);
      if (refused) {
        this.#drop(key, session);
        if (!wasOnline) await this.#unlist(key);
      }
      return { refused, evict, cameOnline, connections };
    } catch {
      // Redis is unreachable: what this node itself knows decides.
      const leaving = Math.max(0, user.sessions.length - maxSockets);
      const connections = this.#counts.of(ref.env) - leaving;
      if (ceiling !== null && connections > ceiling) {
        this.#drop(key, session);
        this.#forget(entry);
        return { refused: true, evict: [], cameOnline: false, connections: connections - 1 };
      }
      entry.openedAt ||= String(this.#clock.now() * 1_000);
      if (!entry.closed) this.#dirty.add(entry);
      const evict: SessionRef[] = [];
      while (user.sessions.length > maxSockets) {
        const oldest = user.sessions[0]!;
        this.#drop(key, oldest.session);
        this.#forget(oldest);
        evict.push({ node: this.#node, id: oldest.session });
      }
      return { refused: false, evict, cameOnline: !wasOnline, connections };
    }
  }

  async remove(ref: UserRef, session: string): Promise<{ last: boolean }> {
    const key = keyOf(ref);
    const entry = this.#drop(key, session);
    if (!entry) return { last: false };
    const user = this.#users.get(key)!;
    const here = user.sessions.length === 0;
    if (here) user.graceUntil = this.#clock.monotonic() + this.#graceMs;
    await entry.pending;
    try {
      const last = await this.#sockets.takeOut(entry);
      if (!last) await this.#unlist(key);
      return { last };
    } catch {
      this.#forget(entry);
      user.unrecorded = here;
      return { last: here };
    }
  }

  async endGrace(ref: UserRef): Promise<boolean> {
    const key = keyOf(ref);
    // The caller's wait may have begun slightly before the grace period in Redis.
    const slack = Math.min(1_000, this.#graceMs / 4);
    const user = this.#users.get(key);
    const here = user?.sessions.length === 0 && user.graceUntil <= this.#clock.monotonic() + slack;
    try {
      const settled =
        (await this.#sockets.run(endGraceScript, userKeys(key), [
          slack,
          here ? this.#lease.name : '',
          here && user.unrecorded ? '1' : '',
        ])) === 1;
      if (settled || here) await this.#unlist(key);
      return settled;
    } catch {
      if (here) this.#users.delete(key);
      return here;
    }
  }

  async online(refs: readonly UserRef[]): Promise<boolean[]> {
    const found = await this.onlineEverywhere(refs);
    if (found) return found;
    const now = this.#clock.monotonic();
    return refs.map((ref) => {
      const user = this.#users.get(keyOf(ref));
      return user !== undefined && (user.sessions.length > 0 || user.graceUntil > now);
    });
  }

  async onlineEverywhere(refs: readonly UserRef[]): Promise<boolean[] | null> {
    try {
      return await this.#sockets.exist(refs, 2);
    } catch {
      return null;
    }
  }

  async connected(refs: readonly UserRef[]): Promise<boolean[]> {
    try {
      return await this.#sockets.exist(refs, 1);
    } catch {
      return refs.map((ref) => (this.#users.get(keyOf(ref))?.sessions.length ?? 0) > 0);
    }
  }

  async connections(env: number): Promise<number> {
    try {
      this.#sockets.mustBeReady();
      return await this.#connection.client.scard(openKey(env));
    } catch {
      return this.#counts.of(env);
    }
  }

  onDeadNode(listener: (lost: Lost) => void): void {
    this.#deadNodeListeners.push(listener);
  }

  onBack(listener: (users: UserRef[]) => void): void {
    this.#backListener = listener;
  }

  onReachable(listener: () => void): void {
    this.#reachableListener = listener;
  }

  /** The lease keeps running for users whose grace period this node began; after its end another node settles them. */
  async close(): Promise<void> {
    this.#connection.client.removeListener('ready', this.#reconnected);
    this.#connection.client.removeListener('+node', this.#reconnected);
    await this.#periodic.stop();
    await this.#working;
    try {
      this.#sockets.mustBeReady();
      if (this.#lease.begun)
        await this.#lease.end(this.#lease.name, this.#users.size > 0 ? this.#graceMs : 0);
    } catch {
      // The lease ends by itself.
    }
  }

  // This node's sockets.

  #drop(key: string, session: string): Entry | undefined {
    const user = this.#users.get(key);
    const at = user?.sessions.findIndex((entry) => entry.session === session) ?? -1;
    if (!user || at < 0) return undefined;
    const [entry] = user.sessions.splice(at, 1);
    entry!.closed = true;
    this.#dirty.delete(entry!);
    this.#counts.add(user.env, -1);
    return entry;
  }

  /** The socket may be registered in Redis and could not be removed; that is done later. */
  #forget(entry: Entry): void {
    if (entry.tried !== '') this.#dirty.add(entry);
  }

  async #unlist(key: string): Promise<void> {
    if (this.#users.get(key)?.sessions.length !== 0) return;
    this.#users.delete(key);
    await this.#connection.client.srem(listKey(this.#lease.name), key);
  }

  // Keeping it right.

  readonly #reconnected = (): void => {
    // Before the first lease nobody here was told anything.
    if (this.#lease.begun) {
      this.#lease.renew();
      this.#reachableListener?.();
    }
    this.#tick().catch(() => undefined);
  };

  async #tick(): Promise<void> {
    if (this.#connection.client.status !== 'ready') return;
    try {
      await this.#lease.beat();
      if (!this.#lease.begun) await this.#lease.beat();
      this.#working ??= this.#work().finally(() => (this.#working = undefined));
    } catch (error) {
      this.#logger.debug({ err: error }, 'the presence lease was not renewed');
    }
  }

  async #work(): Promise<void> {
    try {
      await this.#repair();
      for (const ended of this.#lease.ended) {
        for await (const lost of clearLease(this.#connection, ended))
          for (const listener of this.#deadNodeListeners) listener(lost);
        this.#lease.ended.delete(ended);
        // There may be more, and clearing a long list must not cost this node its own lease.
        await this.#lease.beat();
      }
    } catch (error) {
      this.#logger.debug({ err: error }, 'presence could not be repaired yet');
    }
  }

  async #repair(): Promise<void> {
    const former = [...this.#lease.former];
    while (this.#dirty.size > 0) {
      const entries = [...this.#dirty].slice(0, chunk);
      const came = await Promise.all(entries.map((entry) => this.#repairEntry(entry)));
      const back = entries.filter((_, i) => came[i]).map(({ key }) => refOfKey(key));
      if (back.length > 0) this.#backListener?.(back);
    }
    for (const lease of former) {
      await this.#lease.end(lease, 0);
      this.#lease.former.delete(lease);
    }
  }

  /** Returns true if the user came online only by this. */
  async #repairEntry(entry: Entry): Promise<boolean> {
    let came = false;
    await entry.pending;
    if (entry.closed) await this.#sockets.takeOut(entry);
    else if (entry.lease !== this.#lease.name) {
      const registering = this.#sockets.register(entry, unlimited, null);
      entry.pending = registering.catch(() => (entry.isUnconfirmed = true));
      came = ((await registering).cameOnline || entry.isUnconfirmed) && !entry.closed;
      entry.isUnconfirmed = false;
    }
    if (entry.closed || entry.lease === this.#lease.name) this.#dirty.delete(entry);
    return came;
  }
}
