import { channels } from '../../features/node-bus.ts';
import type { NodeBus } from '../../features/node-bus.ts';
import type { LogEvent } from '../../log/events.ts';
import { sleep } from '../../platform/clock.ts';
import type { Timers } from '../../platform/clock.ts';
import { LatestOnly } from '../../platform/latest-only.ts';
import type { Logger } from '../../platform/logging.ts';
import { Ephemeral } from './ephemeral.ts';
import type { FrameTrace, LocalUser, Route, Session } from './session.ts';
import { pushFrame, textFrame } from './wire.ts';

/**
 * Fan-out on one node: which open sockets get an event, and in which order.
 *
 * A conversation with a connected member on this node has a route. Its events come from this node's own commits and,
 * through the bus, from other nodes. Events of a conversation are applied in seq order: one that comes too early is
 * held for a moment. If the missing one does not come, the later ones go out and the client repairs the gap (SPEC 4,
 * gap handling).
 */

export interface Membership {
  cid: string;
  lastSeq: number;
}

const holdMs = 250;
/** How many events of one conversation are held; beyond this they go out at once. */
const maxHeld = 200;
/** How many conversations that have no route any more are remembered. */
const mostEnded = 10_000;
/** How many users' conversations are read together. */
const comparedAtOnce = 100;

export class Hub {
  readonly #users = new Map<number, LocalUser>();
  readonly #routes = new Map<string, Route>();
  /**
   * How far conversations were when their last user here left. Events up to there may still come, from another node or
   * from a slow read of the store; they must not begin a route again.
   */
  readonly #ended = new Map<string, number>();
  /** Users whose memberships are about to be compared with the store. */
  readonly #doubted = new Set<LocalUser>();
  /** For frames outside the seq stream. */
  readonly ephemeral: Ephemeral;
  readonly #bus: NodeBus;
  readonly #timers: Timers;
  readonly #logger: Logger;
  readonly #memberships: (env: number, user: number) => Promise<Membership[]>;
  readonly #missed: (env: number, cid: string, after: number) => Promise<LogEvent[] | null>;
  readonly #catchingUp = new LatestOnly<void, void>(() => this.#catchUp());
  /**
   * Called when a user, connected here or not, lost a membership, so that whom the user may watch, and who may watch
   * the user, has changed.
   */
  onLeave: (user: number) => void = () => undefined;
  /** Called when a message that this node committed goes out to sockets here. */
  onFanout: (env: number) => void = () => undefined;

  /** Returns the trace of a user who connects to this node, if somebody follows the user. */
  traceOf: (env: number, user: number) => FrameTrace | null = () => null;

  constructor(options: {
    bus: NodeBus;
    timers: Timers;
    logger: Logger;
    memberships: (env: number, user: number) => Promise<Membership[]>;
    /** Events after a seq, for a user who joined while this node was not subscribed yet; null if there are too many. */
    missed: (env: number, cid: string, after: number) => Promise<LogEvent[] | null>;
  }) {
    this.#bus = options.bus;
    this.ephemeral = new Ephemeral(this.#users, this.#routes, options.bus);
    this.#timers = options.timers;
    this.#logger = options.logger;
    this.#memberships = options.memberships;
    this.#missed = options.missed;
    options.bus.on('event', (event) => this.received(event));
  }

  get users(): ReadonlyMap<number, LocalUser> {
    return this.#users;
  }
  get routeCount(): number {
    return this.#routes.size;
  }

  /** Resolves when every event that is committed from now on reaches the session. */
  async attach(session: Session, env: number, no: number, id: string): Promise<LocalUser> {
    let user = this.#users.get(no);
    if (!user) {
      user = { env, no, id, sessions: [], routes: [], loading: null, trace: this.traceOf(env, no) };
      this.#users.set(no, user);
      const loading = { left: new Set<string>(), done: Promise.resolve() };
      user.loading = loading;
      const loaded = user;
      loading.done = this.#load(user, loading.left).then(
        (): void => {
          loaded.loading = null;
        },
        (error: unknown) => {
          // The next login loads again: a user without routes would receive nothing.
          this.#forget(loaded);
          throw error;
        },
      );
    }
    // Copied, because an array that was pushed to reserves room for sixteen more elements.
    user.sessions = [...user.sessions, session];
    session.user = user;
    await user.loading?.done;
    return user;
  }

  async #load(user: LocalUser, left: Set<string>): Promise<Membership[]> {
    await this.#bus.subscribe([channels.user(user.no)]);
    const memberships = await this.#memberships(user.env, user.no);
    if (this.#users.get(user.no) !== user) return [];
    for (const { cid, lastSeq } of memberships) {
      if (left.has(cid)) continue;
      const route = this.#routes.get(cid) ?? this.#createRoute(cid, lastSeq);
      // Nobody waits for what came before; it may be older than this membership.
      if (route.users.length === 0) route.lastSeq = Math.max(route.lastSeq, lastSeq);
      join(route, user);
    }
    // Also subscribes channels that another user's login is only about to subscribe.
    await this.#bus.subscribe(user.routes.map((route) => channels.conversation(route.cid)));
    return memberships;
  }

  /**
   * A node that is gone may have committed something without telling the others, so what users here have missed is
   * read from the store. Only one round runs at a time; requests made meanwhile cause one more round.
   */
  catchUp(): Promise<void> {
    return this.#catchingUp.run(undefined);
  }

  async #catchUp(): Promise<void> {
    try {
      const behind = new Map<Route, number>();
      const users = [...this.#users.values()].filter((user) => user.loading === null);
      for (let i = 0; i < users.length; i += comparedAtOnce)
        await Promise.all(users.slice(i, i + comparedAtOnce).map((user) => this.#compare(user, behind)));
      // Events that are only on their way arrive meanwhile.
      await sleep(this.#timers, holdMs);
      for (const [route, lastSeq] of behind)
        if (route.lastSeq < lastSeq && this.#routes.get(route.cid) === route && route.users.length > 0)
          await this.#read(route, route.users[0]!.env);
    } catch (error) {
      this.#logger.warn({ err: error }, 'catching up with another node failed');
    }
  }

  /** Loads the user's memberships again, and finds routes that are behind the store. */
  async #compare(user: LocalUser, behind: Map<Route, number>): Promise<void> {
    if (user.loading !== null || this.#users.get(user.no) !== user) return;
    const known = [...user.routes];
    const left = new Set<string>();
    const loaded = this.#load(user, left);
    const done = loaded.then(
      () => undefined,
      () => undefined,
    );
    user.loading = { left, done };
    void done.then(() => (user.loading = null));
    const lastSeqs = new Map((await loaded).map(({ cid, lastSeq }) => [cid, lastSeq]));
    // The user was added to a conversation without being told.
    if (user.routes.some((route) => !known.includes(route) && lastSeqs.has(route.cid)))
      this.sendTo([user], pushFrame('resync_hint', {}));
    // For a conversation that the user has left, the last events must still be sent.
    for (const route of known) {
      const lastSeq = lastSeqs.get(route.cid) ?? Infinity;
      if (route.lastSeq < lastSeq) behind.set(route, lastSeq);
    }
  }

  /** The store was restored to an earlier state: seqs continue from a lower number. */
  restart(): void {
    this.#ended.clear();
    for (const route of this.#routes.values()) {
      route.lastSeq = 0;
      route.held = null;
    }
  }

  detach(session: Session): void {
    const { user } = session;
    if (!user) return;
    user.sessions = user.sessions.filter((s) => s !== session);
    if (user.sessions.length === 0) this.#forget(user);
  }

  #forget(user: LocalUser): void {
    if (this.#users.get(user.no) !== user) return;
    this.#users.delete(user.no);
    const gone = user.routes.flatMap((route) =>
      this.#leaveRoute(route, user) ? [channels.conversation(route.cid)] : [],
    );
    user.routes = [];
    this.#bus.unsubscribe([channels.user(user.no), ...gone]);
  }

  #createRoute(cid: string, lastSeq: number): Route {
    const route: Route = {
      cid,
      lastSeq: Math.max(lastSeq, this.#ended.get(cid) ?? 0),
      users: [],
      held: null,
    };
    this.#ended.delete(cid);
    this.#routes.set(cid, route);
    return route;
  }

  /** Returns true if no user is left and the route was removed. */
  #leaveRoute(route: Route, user: LocalUser): boolean {
    const at = route.users.indexOf(user);
    if (at >= 0) route.users.splice(at, 1);
    if (route.users.length > 0 || this.#routes.get(route.cid) !== route) return false;
    this.#endRoute(route);
    return true;
  }

  #endRoute(route: Route): void {
    this.#routes.delete(route.cid);
    this.#ended.set(route.cid, route.lastSeq);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > mostEnded) this.#ended.delete(oldest!);
  }

  /** Runs after a commit on this node: sends the event to the sockets here and to the other nodes. */
  publish(event: LogEvent): void {
    if (event.e === 'message.new' && this.#routes.has(event.cid)) this.onFanout(event.env);
    this.received(event);
    if (this.#bus.alone) return;
    const users = [...(event.join ?? []), ...(event.leave ?? [])].map(channels.user);
    this.#bus.publish('event', event, channels.conversation(event.cid), ...users);
  }

  /** An event that this node or another committed, or that was read from the store. */
  received(event: LogEvent): void {
    const joining = event.join?.flatMap((no) => this.#users.get(no) ?? []) ?? [];
    for (const no of event.leave ?? []) this.#users.get(no)?.loading?.left.add(event.cid);
    let route = this.#routes.get(event.cid);
    if (event.seq <= (route?.lastSeq ?? this.#ended.get(event.cid) ?? 0)) {
      for (const user of joining) if (!route?.users.includes(user)) void this.#doubt(user);
      return;
    }
    if (!route) {
      if (joining.length === 0) return;
      route = this.#createRoute(event.cid, this.#before(event));
      void this.#follow(route, event.env);
    }
    if (event.seq > route.lastSeq + 1) this.#hold(route, event);
    else this.#apply(route, event);
  }

  /**
   * A join came after later events of its conversation, so the user was not sent these. In a moment, when what is on its
   * way has arrived, the store says whether the user is a member.
   */
  async #doubt(user: LocalUser): Promise<void> {
    if (this.#doubted.has(user)) return;
    this.#doubted.add(user);
    try {
      await sleep(this.#timers, holdMs);
      this.#doubted.delete(user);
      await user.loading?.done;
      await this.#compare(user, new Map());
    } catch (error) {
      this.#logger.warn({ err: error, user: user.no }, 'comparing memberships after a late join failed');
    }
  }

  /**
   * Where a route begins that is made by a join: just before it or, if the conversation had a route a while ago, where
   * that ended. Users may have joined and left on other nodes in between; that is read, and the join is held meanwhile.
   */
  #before({ cid, seq }: LogEvent): number {
    const ended = this.#ended.get(cid);
    return ended === undefined || this.#bus.alone || seq - ended > maxHeld ? seq - 1 : ended;
  }

  /** For a route made by a join: what was committed before the bus was subscribed is read from the store. */
  async #follow(route: Route, env: number): Promise<void> {
    try {
      await this.#bus.subscribe([channels.conversation(route.cid)]);
      if (!this.#bus.alone) await this.#read(route, env);
    } catch (error) {
      this.#logger.warn({ err: error, cid: route.cid }, 'catching up after a join failed');
      this.sendTo(route.users, pushFrame('resync_required', { cid: route.cid }));
    }
  }

  async #read(route: Route, env: number): Promise<void> {
    const missed = await this.#missed(env, route.cid, route.lastSeq);
    if (missed === null) this.sendTo(route.users, pushFrame('resync_required', { cid: route.cid }));
    else for (const later of missed) this.received(later);
  }

  #hold(route: Route, event: LogEvent): void {
    const held = (route.held ??= this.#newHeld(route));
    held.set(event.seq, event);
    if (held.size > maxHeld) this.#release(route);
  }

  #newHeld(route: Route): Map<number, LogEvent> {
    const held = new Map<number, LogEvent>();
    this.#timers.after(holdMs, () => {
      if (route.held === held) this.#release(route);
    });
    return held;
  }

  /** The missing events did not come: the held ones go out in order. */
  #release(route: Route): void {
    const { held } = route;
    route.held = null;
    for (const event of [...(held?.values() ?? [])].sort((a, b) => a.seq - b.seq)) {
      if (this.#routes.get(route.cid) !== route) this.received(event);
      else if (event.seq > route.lastSeq) this.#apply(route, event);
    }
  }

  #apply(route: Route, event: LogEvent): void {
    route.lastSeq = event.seq;
    for (const no of event.join ?? []) {
      const user = this.#users.get(no);
      if (user) join(route, user);
    }
    if (route.users.length > 0) this.sendTo(route.users, textFrame(event.frame));
    for (const no of event.leave ?? []) this.#leave(route, no);
    if (event.e === 'conversation.deleted') for (const user of [...route.users]) this.#leave(route, user.no);
    // No user is left; one of the held events may add a user again.
    if (this.#routes.get(route.cid) !== route) return this.#release(route);
    const next = route.held?.get(event.seq + 1);
    if (next) {
      route.held!.delete(next.seq);
      if (route.held!.size === 0) route.held = null;
      this.#apply(route, next);
    } else if (route.users.length === 0 && route.held === null) {
      // Who was to join with a held event has disconnected meanwhile.
      this.#endRoute(route);
      this.#bus.unsubscribe([channels.conversation(route.cid)]);
    }
  }

  #leave(route: Route, no: number): void {
    const user = this.#users.get(no);
    if (user?.routes.includes(route)) {
      user.routes = user.routes.filter((r) => r !== route);
      if (this.#leaveRoute(route, user)) this.#bus.unsubscribe([channels.conversation(route.cid)]);
    }
    this.onLeave(no);
  }

  sendTo(users: readonly LocalUser[], frame: Buffer): void {
    for (const user of users) for (const session of user.sessions) session.send(frame);
  }

  /** True if this node's routes say that the user is a member. */
  isMember(user: LocalUser, cid: string): boolean {
    const route = this.#routes.get(cid);
    return route !== undefined && route.users.includes(user);
  }
}

function join(route: Route, user: LocalUser): void {
  if (route.users.includes(user)) return;
  route.users.push(user);
  user.routes.push(route);
}
