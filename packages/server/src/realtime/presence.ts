import { limits, realtime } from '@parley/protocol';
import type { PresenceItem } from '@parley/protocol';
import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import * as sql from '../features/presence/sql.ts';
import { setLastSeen } from '../features/users/sql.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logging.ts';
import type { Db } from '../platform/postgres/db.ts';
import type { Added, PresenceRegistry, UserRef } from '../platform/presence/port.ts';
import { presenceFrame, Watching } from './watching.ts';
import type { WatchingOptions } from './watching.ts';

/** A user whose last socket closed, with the time by the wall clock, which people read, and by the monotonic clock. */
interface Leaving extends UserRef {
  closedAt: number;
  closedTick: number;
}

export interface PresenceOptions extends WatchingOptions {
  clock: Clock;
  logger: Logger;
}

/** Milliseconds after which live nodes have registered their sockets again in a Redis that came back. */
const registeredMs = 5_000;
/** Of how many users one statement ends the grace period. */
const endedAtOnce = 500;

/** presence#grace: who is online. `watching` tells the sockets that want to know. */
export class Presence {
  readonly #registry: PresenceRegistry;
  readonly #bus: NodeBus;
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Users in their grace period whom this node will take offline, in the order in which it ends. */
  readonly #leaving = new Map<number, Leaving>();

  /** When watchers are told of everybody again, by the monotonic clock. */
  #tellAllAt = Infinity;

  readonly watching: Watching;

  constructor(options: PresenceOptions) {
    this.#registry = options.registry;
    this.#bus = options.bus;
    this.#db = options.db;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.watching = new Watching(options);
    this.#registry.onDeadNode(
      ({ offline }) => void this.#endGrace(offline.map((user) => ({ ...user, ...this.#justNow() }))),
    );
    this.#registry.onBack((users) => void this.#back(users));
    this.#registry.onReachable(() => this.restored());
  }

  /**
   * Registers a socket if the environment has room for it. `evict` lists the sockets that must close (at most 10 per
   * user).
   */
  async opened(ref: UserRef, session: string, ceiling: number | null): Promise<Added> {
    const added = await this.#registry.add(ref, session, limits.socketsPerUser, ceiling);
    if (!added.refused) this.#leaving.delete(ref.user);
    return added;
  }

  /** Tells watchers what a snapshot would say. */
  cameOnline(user: number, item: Omit<PresenceItem, 'online'>): void {
    this.#announce(user, { ...item, online: true });
  }

  async closed(ref: UserRef, session: string): Promise<void> {
    const { last } = await this.#registry.remove(ref, session);
    // The time is read after the registry was updated: a user who is taken offline before the registry's grace period ends would
    // never go offline.
    if (last) this.#leaving.set(ref.user, { ...ref, ...this.#justNow() });
  }

  /** Called every second: takes users offline whose grace period is over, in the order in which their sockets closed. */
  tick(): void {
    const over = this.#clock.monotonic() - realtime.presenceGraceMs;
    const ended: Leaving[] = [];
    for (const [user, leaving] of this.#leaving) {
      if (leaving.closedTick > over) break;
      this.#leaving.delete(user);
      ended.push(leaving);
    }
    if (ended.length > 0) void this.#endGrace(ended);
    if (this.#clock.monotonic() >= this.#tellAllAt) {
      this.#tellAllAt = Infinity;
      void this.#tellWatchers('all');
    }
  }

  /**
   * Announcements of other nodes may have been lost, and while Redis was away this node knew only its own sockets. Watchers are
   * told what they do not know: at once who is online, and of everybody when all nodes have had time to register their
   * sockets. What comes later is announced, and heard here. Whom they may no longer see they are told nothing of.
   */
  restored(): void {
    void this.watching.lookAtAll();
    this.#tellAllAt = this.#clock.monotonic() + registeredMs;
    void this.#tellWatchers('online');
  }

  async #tellWatchers(whom: 'online' | 'all'): Promise<void> {
    try {
      for (const some of portions(this.watching.watched())) {
        const found = await sql.usersByNumber(this.#db, some);
        const watched = new Map(some.map((one) => [one.user, one]));
        const refs = found.map(({ no }) => watched.get(no)!);
        const online = await this.#registry.onlineEverywhere(refs);
        if (!online) throw new Error('the registry cannot be asked');
        for (const [i, item] of found.entries())
          if (online[i] || whom === 'all')
            this.watching.correct(refs[i]!, presenceFrame({ ...item, online: online[i]! }));
      }
    } catch (error) {
      this.#tellAllAt = this.#clock.monotonic() + registeredMs;
      this.#logger.warn({ err: error }, 'watchers were not told who is online; trying again');
    }
  }

  /** At shutdown no tick of this node will take these users offline later, so their last-seen time is stored now. */
  async drained(): Promise<void> {
    const leaving = [...this.#leaving.values()];
    this.#leaving.clear();
    for (const some of portions(leaving)) await this.#keep(some);
  }

  #justNow(): { closedAt: number; closedTick: number } {
    return { closedAt: this.#clock.now(), closedTick: this.#clock.monotonic() };
  }

  async #endGrace(leaving: Leaving[]): Promise<void> {
    for (const some of portions(leaving))
      try {
        const offline = await Promise.all(
          some.map(({ env, user }) => this.#registry.endGrace({ env, user })),
        );
        const gone = some.filter((_, i) => offline[i]);
        const kept = await this.#keep(gone);
        for (const { no, ...item } of kept) this.#announce(no, { ...item, online: false });
        await this.#correct(gone, kept);
      } catch (error) {
        this.#logger.warn({ err: error, users: some.length }, 'the end of grace periods could not be stored');
      }
  }

  /** Who came back while this was being stored was announced before the end that has just been announced. */
  async #correct(gone: readonly UserRef[], told: readonly ({ no: number } & Omit<PresenceItem, 'online'>)[]) {
    if (gone.length === 0) return;
    const online = await this.#registry.online(gone);
    const back = new Set(gone.filter((_, i) => online[i]).map(({ user }) => user));
    for (const { no, ...item } of told) if (back.has(no)) this.#announce(no, { ...item, online: true });
  }

  /** A user was last seen when the last socket closed, not when this was noticed. */
  async #keep(users: readonly Leaving[]) {
    if (users.length === 0) return [];
    return setLastSeen(
      this.#db,
      users.map(({ env, user, closedAt }) => ({ env, user, at: new Date(closedAt).toISOString() })),
    );
  }

  async #back(users: UserRef[]): Promise<void> {
    try {
      const found = await sql.usersByNumber(this.#db, users);
      for (const { no, ...item } of found) this.#announce(no, { ...item, online: true });
    } catch (error) {
      this.#logger.warn({ err: error }, 'watchers were not told who is online again');
    }
  }

  #announce(user: number, item: PresenceItem): void {
    const frame = presenceFrame(item);
    this.watching.announced(user, frame);
    this.#bus.publish('presence', frame, channels.watchersOf(user));
  }
}

function* portions<T>(items: readonly T[]): Generator<T[]> {
  for (let i = 0; i < items.length; i += endedAtOnce) yield items.slice(i, i + endedAtOnce);
}
