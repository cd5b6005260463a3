import type { PresenceItem } from '@parley/protocol';
import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import { blockersOf } from '../features/blocks/sql.ts';
import { usersById } from '../features/presence/sql.ts';
import type { Sharing } from '../features/users/sharing.ts';
import { LatestOnly } from '../platform/flow/latest-only.ts';
import type { Db } from '../platform/postgres/db.ts';
import type { PresenceRegistry, UserRef } from '../platform/presence/port.ts';
import type { LiveSession } from './local-user.ts';
import { textFrame } from './wire.ts';

export const presenceFrame = ({ userId, online, lastSeenAt }: PresenceItem): string =>
  `{"t":"presence","d":${JSON.stringify({ userId, online, lastSeenAt })}}`;

/** The look-ups of a session. */
interface Watch {
  requests: LatestOnly<readonly string[], PresenceItem[]>;
  /** How many look-ups of whole sets have begun: the result of a later one replaces an earlier check of some of its users. */
  begun: number;
}

/** Users of a watch set that must be checked again, and the last frame of each until it is known who may be seen. */
interface Recheck {
  users: Set<number>;
  held: Map<number, Buffer>;
}

/** The sessions here that watch a user. */
interface Watchers {
  sessions: Set<LiveSession>;
  /** The frame that all of them were told last; undefined if they were told different things, or nothing yet. */
  told: string | undefined;
}

/** A watched user, and what the watchers had been told when the list was made. */
export interface Watched extends UserRef {
  told: string | undefined;
}

export interface WatchingOptions {
  db: Db;
  sharing: Sharing;
  registry: PresenceRegistry;
  bus: NodeBus;
}

/**
 * presence#watch: who watches whom. A session looks up one set at a time. Of checks for users whom it may no
 * longer see, at most one runs and one waits, however many memberships end at once.
 */
export class Watching {
  readonly #options: WatchingOptions;
  readonly #watchers = new Map<number, Watchers>();
  readonly #watches = new Map<LiveSession, Watch>();
  readonly #rechecks = new Map<LiveSession, Recheck>();
  /** For each set that is being looked up: the users who lost a membership meanwhile. */
  readonly #leavers = new Set<Set<number>>();

  constructor(options: WatchingOptions) {
    this.#options = options;
    options.bus.on('presence', (frame, user) => this.announced(Number(user), frame));
  }

  /**
   * Replaces the session's watch set and returns the snapshot. Of the requests that arrive during a look-up only the
   * newest counts; those that it replaced get its answer, restricted to the users they asked for.
   */
  async watch(session: LiveSession, userIds: readonly string[]): Promise<PresenceItem[]> {
    let watch = this.#watches.get(session);
    if (!watch) {
      const requests = new LatestOnly((ids: readonly string[]) => this.#lookUp(session, ids));
      this.#watches.set(session, (watch = { requests, begun: 0 }));
    }
    const wanted = new Set(userIds);
    const items = await watch.requests.run([...wanted]);
    return items.filter((item) => wanted.has(item.userId));
  }

  async #lookUp(session: LiveSession, ids: readonly string[]): Promise<PresenceItem[]> {
    const { db, sharing, registry, bus } = this.#options;
    const { env, no } = session.user!;
    const watch = this.#watches.get(session);
    // The session closed before its turn came.
    if (!watch) return [];
    const leavers = new Set<number>();
    this.#leavers.add(leavers);
    watch.begun++;
    try {
      const users = await usersById(db, env, ids);
      const others = users.map((u) => u.no).filter((other) => other !== no);
      const shared = await sharing(env, no, others);
      const seen = users.filter((u) => u.no === no || shared.has(u.no));
      if (session.state === 'live')
        await bus.subscribe(
          this.#replace(
            session,
            seen.map((f) => f.no),
          ),
        );
      // Asked after the subscription: a block that comes later is told to this node (`drop`).
      const blockers = await blockersOf(db, env, no, others);
      this.#forget(session, blockers);
      const found = seen.filter((u) => !blockers.has(u.no));
      const online = await registry.online(found.map((f) => ({ env, user: f.no })));
      return found.map(({ no, ...item }, i) => this.#answered(no, { ...item, online: online[i]! }, session));
    } finally {
      this.#leavers.delete(leavers);
      if (leavers.size > 0) this.#lookAgain(session, leavers);
    }
  }

  /** What one session is told now must be what all others were told: else all are told again when the next occasion comes. */
  #answered(user: number, item: PresenceItem, session: LiveSession): PresenceItem {
    const watchers = this.#watchers.get(user);
    if (watchers) {
      const frame = presenceFrame(item);
      if (watchers.sessions.size === 1 && watchers.sessions.has(session)) watchers.told = frame;
      else if (watchers.told !== frame) watchers.told = undefined;
    }
    return item;
  }

  /** Returns the channels that no session here was subscribed to. */
  #replace(session: LiveSession, users: number[]): string[] {
    this.#forget(session);
    session.watching = new Set(users);
    const fresh: string[] = [];
    for (const user of users) {
      const watchers = this.#watchers.get(user);
      if (watchers) watchers.sessions.add(session);
      else {
        this.#watchers.set(user, { sessions: new Set([session]), told: undefined });
        fresh.push(channels.watchersOf(user));
      }
    }
    return fresh;
  }

  /** Called when the socket closed. */
  end(session: LiveSession): void {
    this.#watches.delete(session);
    this.#rechecks.delete(session);
    this.#forget(session);
  }

  /** blocks#presence: a user's sessions no longer watch another. */
  drop(watcher: number, watched: number): void {
    for (const session of [...(this.#watchers.get(watched)?.sessions ?? [])])
      if (session.user?.no === watcher) this.#forget(session, [watched]);
  }

  #forget(session: LiveSession, users: Iterable<number> = session.watching ?? []): void {
    for (const user of [...users]) {
      session.watching?.delete(user);
      const watchers = this.#watchers.get(user);
      watchers?.sessions.delete(session);
      if (watchers?.sessions.size === 0) {
        this.#watchers.delete(user);
        this.#options.bus.unsubscribe([channels.watchersOf(user)]);
      }
    }
  }

  /** All users whom a session here watches. Watchers and watched are of one environment. */
  watched(): Watched[] {
    return [...this.#watchers].map(
      ([
        user,
        {
          sessions: [session],
          told,
        },
      ]) => ({ env: session!.user!.env, user, told }),
    );
  }

  /** Tells the watchers of a user how it is, unless they were told something since they were listed. */
  correct({ user, told }: Watched, frame: string): void {
    if (this.#watchers.get(user)?.told === told) this.announced(user, frame);
  }

  /** Passes a presence frame, from this node or another, to the sockets here that watch the user and do not know it yet. */
  announced(user: number, text: string): void {
    const watchers = this.#watchers.get(user);
    if (!watchers || watchers.told === text) return;
    watchers.told = text;
    const frame = textFrame(text);
    for (const session of watchers.sessions) {
      const recheck = this.#rechecks.get(session);
      if (recheck) recheck.held.set(user, frame);
      else session.send(frame);
    }
  }

  /** A membership ended: sessions of that user, and sessions that watch that user, drop users whom they may no longer see. */
  left(leaver: number, sessions: readonly LiveSession[]): void {
    for (const leavers of this.#leavers) leavers.add(leaver);
    for (const session of sessions) if (session.watching?.size) this.#lookAgain(session, [leaver]);
    for (const session of this.#watchers.get(leaver)?.sessions ?? []) this.#lookAgain(session, [leaver]);
  }

  /** The bus may have lost the word of blocks and memberships. Sessions are checked one after the other: there may be thousands. */
  async lookAtAll(): Promise<void> {
    const begun = [...this.#watches.keys()].flatMap((session) => {
      const recheck = session.watching?.size ? this.#begin(session, [session.user!.no]) : null;
      return recheck ? [{ session, recheck }] : [];
    });
    for (const { session, recheck } of begun) await this.#recheck(session, recheck);
  }

  #lookAgain(session: LiveSession, users: Iterable<number>): void {
    const begun = this.#begin(session, users);
    // Runs in a moment, because the end of a conversation ends many memberships at once.
    if (begun) setImmediate(() => void this.#recheck(session, begun));
  }

  /** Returns null if a check that runs already takes these users, too. */
  #begin(session: LiveSession, users: Iterable<number>): Recheck | null {
    const recheck = this.#rechecks.get(session);
    if (recheck) {
      for (const user of users) recheck.users.add(user);
      return null;
    }
    if (session.state !== 'live') return null;
    const begun = { users: new Set(users), held: new Map<number, Buffer>() };
    this.#rechecks.set(session, begun);
    return begun;
  }

  /** Those of the users whom a user may watch. */
  async #visible(env: number, user: number, users: readonly number[]): Promise<Set<number>> {
    const { db, sharing } = this.#options;
    const [shared, blockers] = await Promise.all([
      sharing(env, user, users),
      blockersOf(db, env, user, users),
    ]);
    return new Set([...shared].filter((other) => !blockers.has(other)));
  }

  async #recheck(session: LiveSession, recheck: Recheck): Promise<void> {
    const { env, no } = session.user!;
    while (recheck.users.size > 0) {
      // If the session's own memberships changed, all users whom it watches must be checked.
      const all = recheck.users.has(no);
      const users = [...(session.watching ?? [])].filter(
        (user) => user !== no && (all || recheck.users.has(user)),
      );
      recheck.users = new Set();
      const begun = this.#watches.get(session)?.begun;
      const visible = await this.#visible(env, no, users).catch(() => new Set<number>());
      // If another set was requested since then, it was looked up later than these.
      if (begun === this.#watches.get(session)?.begun)
        this.#forget(
          session,
          users.filter((user) => !visible.has(user)),
        );
    }
    // Otherwise the socket closed meanwhile.
    if (this.#rechecks.get(session) !== recheck) return;
    this.#rechecks.delete(session);
    for (const [user, frame] of recheck.held) if (session.watching?.has(user)) session.send(frame);
  }
}
