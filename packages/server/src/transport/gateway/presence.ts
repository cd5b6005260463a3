import { limits, realtime } from '@parley/protocol';
import type { PresenceItem } from '@parley/protocol';
import * as sql from '../../features/presence/sql.ts';
import type { Bus } from '../../platform/bus/port.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { PresenceRegistry, SessionRef, UserRef } from '../../platform/presence/port.ts';
import { encodePresence } from './bus-messages.ts';
import type { Session } from './session.ts';
import { textFrame } from './wire.ts';

/** The last socket of a user closed at this moment, by the wall clock, which people read, and by the monotonic one. */
interface Leaving extends UserRef {
  closedAt: number;
  closedTick: number;
}

/** SPEC 4, socket rules 2 and 3: who is online, and who is told. */
export class Presence {
  readonly #registry: PresenceRegistry;
  readonly #bus: Bus;
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #watchers = new Map<number, Set<Session>>();
  /** Users in their grace period that this node settles, in the order in which it ends. */
  readonly #leaving = new Map<number, Leaving>();

  /** Sessions whose watch set is being looked at again: how many times at once, and the last frame of each user until it is known. */
  readonly #rechecked = new Map<Session, { pending: number; held: Map<number, Buffer> }>();

  /** Called with each session of a node that died, on one of the others. */
  onLost: (session: UserRef & { session: string }) => void = () => undefined;

  constructor(options: { registry: PresenceRegistry; bus: Bus; db: Db; clock: Clock; logger: Logger }) {
    this.#registry = options.registry;
    this.#bus = options.bus;
    this.#db = options.db;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#registry.onDeadNode(({ sessions, offline }) => {
      for (const user of offline) void this.#settle({ ...user, ...this.#justNow() });
      for (const session of sessions) this.onLost(session);
    });
    this.#registry.onBack((users) => void this.#back(users));
  }

  /** Registers a socket; returns those that must make room (the 10-socket rule). */
  async opened(ref: UserRef, userId: string, session: string): Promise<SessionRef[]> {
    const { evict, cameOnline } = await this.#registry.add(ref, session, limits.socketsPerUser);
    this.#leaving.delete(ref.user);
    if (cameOnline) this.#announce(ref.user, { userId, online: true, lastSeenAt: null });
    return evict;
  }

  async closed(ref: UserRef, session: string): Promise<void> {
    const { last } = await this.#registry.remove(ref, session);
    // Read after the registry did: settled earlier than its own grace period ends, the user would never go offline.
    if (last) this.#leaving.set(ref.user, { ...ref, ...this.#justNow() });
  }

  connections(env: number): Promise<number> {
    return this.#registry.connections(env);
  }

  /** Called every second: grace periods that are over. In the order of their closing. */
  tick(): void {
    const over = this.#clock.monotonic() - realtime.presenceGraceMs;
    for (const [user, leaving] of this.#leaving) {
      if (leaving.closedTick > over) return;
      this.#leaving.delete(user);
      void this.#settle(leaving);
    }
  }

  /** At shutdown: nobody here will settle these later, so their last-seen time is kept now. */
  async drained(): Promise<void> {
    const leaving = [...this.#leaving.values()];
    this.#leaving.clear();
    for (const { env, user, closedAt } of leaving)
      await sql.setLastSeen(this.#db, env, user, new Date(closedAt).toISOString());
  }

  #justNow(): { closedAt: number; closedTick: number } {
    return { closedAt: this.#clock.now(), closedTick: this.#clock.monotonic() };
  }

  async #settle({ env, user, closedAt }: Leaving): Promise<void> {
    try {
      if (!(await this.#registry.settle({ env, user }))) return;
      const lastSeenAt = new Date(closedAt).toISOString();
      const userId = await sql.setLastSeen(this.#db, env, user, lastSeenAt);
      if (userId !== undefined) this.#announce(user, { userId, online: false, lastSeenAt });
    } catch (error) {
      this.#logger.warn({ err: error }, 'presence could not be settled');
    }
  }

  async #back(users: UserRef[]): Promise<void> {
    try {
      const found = await sql.idsOf(this.#db, users);
      for (const { no, userId } of found) this.#announce(no, { userId, online: true, lastSeenAt: null });
    } catch (error) {
      this.#logger.warn({ err: error }, 'watchers were not told who is online again');
    }
  }

  #announce(user: number, item: PresenceItem): void {
    const frame = `{"t":"presence","d":${JSON.stringify(item)}}`;
    this.announced(user, frame);
    if (!this.#bus.alone) this.#bus.publish(`w:${user}`, encodePresence(frame));
  }

  /** From this node or another: to the sockets here that watch the user. */
  announced(user: number, text: string): void {
    const watchers = this.#watchers.get(user);
    if (!watchers) return;
    const frame = textFrame(text);
    for (const session of watchers) {
      const rechecks = this.#rechecked.get(session);
      if (rechecks) rechecks.held.set(user, frame);
      else session.send(frame);
    }
  }

  /** Replaces the session's watch set; the answer is the snapshot. */
  async watch(session: Session, userIds: string[]): Promise<PresenceItem[]> {
    const { env, no } = session.user!;
    const turn = (session.watchTurn = (session.watchTurn ?? 0) + 1);
    const found = await sql.watchable(this.#db, env, no, [...new Set(userIds)]);
    const fresh: string[] = [];
    // A newer request replaced this one, or the socket closed meanwhile: only the snapshot is left to give.
    const current = turn === session.watchTurn && session.state === 'live';
    if (current) {
      this.unwatch(session);
      session.watching = new Set(found.map((f) => f.no));
    }
    for (const user of current ? session.watching! : []) {
      let watchers = this.#watchers.get(user);
      if (!watchers) {
        this.#watchers.set(user, (watchers = new Set()));
        fresh.push(`w:${user}`);
      }
      watchers.add(session);
    }
    await this.#bus.subscribe(fresh);
    const online = await this.#registry.online(found.map((f) => ({ env, user: f.no })));
    return found.map((f, i) => ({ userId: f.userId, online: online[i]!, lastSeenAt: f.lastSeenAt }));
  }

  unwatch(session: Session, users: Iterable<number> = session.watching ?? []): void {
    for (const user of [...users]) {
      session.watching?.delete(user);
      const watchers = this.#watchers.get(user);
      watchers?.delete(session);
      if (watchers?.size === 0) {
        this.#watchers.delete(user);
        this.#bus.unsubscribe([`w:${user}`]);
      }
    }
  }

  /** A membership ended: sessions of that user, and sessions that watch it, drop what they may no longer see. */
  recheck(sessions: readonly Session[], leaver: number): void {
    const affected = new Set([...sessions, ...(this.#watchers.get(leaver) ?? [])]);
    for (const session of affected) if (session.watching?.size && session.user) void this.#recheck(session);
  }

  async #recheck(session: Session): Promise<void> {
    const rechecks = this.#rechecked.get(session) ?? { pending: 0, held: new Map<number, Buffer>() };
    this.#rechecked.set(session, rechecks);
    rechecks.pending++;
    try {
      const { env, no } = session.user!;
      this.unwatch(session, await sql.unwatchable(this.#db, env, no, [...session.watching!]));
    } catch {
      this.unwatch(session);
    }
    if (--rechecks.pending > 0) return;
    this.#rechecked.delete(session);
    for (const [user, frame] of rechecks.held) if (session.watching?.has(user)) session.send(frame);
  }
}
