import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import type { LiveSession, LocalUser, Route } from './local-user.ts';

/**
 * The users with sockets on this node, and the conversations that they are members of.
 *
 * A user: unknown --first session--> loading (its memberships are read) --> loaded --last session gone--> unknown. A
 * user whose memberships could not be read is unknown again, so that the next login reads them.
 *
 * A route: none --a member connects, or joins while connected--> open --its last user is gone--> ended. How far an
 * ended route was is remembered: events up to there may still come, from another node or from a slow read of the
 * store, and must not begin the route again.
 */

export interface Membership {
  cid: string;
  lastSeq: number;
  /** Not every member may type. */
  limited?: boolean;
  /** The user is silenced there. */
  silenced?: boolean;
}

/** How many conversations that have no route any more are remembered. */
const mostEnded = 10_000;

export class Registry {
  readonly users = new Map<number, LocalUser>();
  readonly routes = new Map<string, Route>();
  readonly #ended = new Map<string, number>();
  readonly #bus: NodeBus;
  readonly #memberships: (env: number, user: number) => Promise<Membership[]>;
  /** Returns the trace of a user who connects to this node, if somebody follows the user. */
  traceOf: (env: number, user: number) => LocalUser['trace'] = () => null;

  constructor(bus: NodeBus, memberships: (env: number, user: number) => Promise<Membership[]>) {
    this.#bus = bus;
    this.#memberships = memberships;
  }

  /** Resolves when every event that is committed from now on reaches the session. */
  async attach(session: LiveSession, env: number, no: number, id: string): Promise<LocalUser> {
    let user = this.users.get(no);
    if (!user) {
      user = {
        env,
        no,
        id,
        sessions: [],
        routes: [],
        silenced: false,
        loading: null,
        trace: this.traceOf(env, no),
      };
      this.users.set(no, user);
      const loading = { left: new Map<string, number>(), done: Promise.resolve() };
      user.loading = loading;
      const loaded = user;
      loading.done = this.load(user, loading.left).then(
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

  /** @param left the conversations that the user leaves while this reads, and with which seq. */
  async load(user: LocalUser, left: ReadonlyMap<string, number>): Promise<Membership[]> {
    await this.#bus.subscribe([channels.user(user.no)]);
    const memberships = await this.#memberships(user.env, user.no);
    if (this.users.get(user.no) !== user) return [];
    for (const { cid, lastSeq, limited = false, silenced = false } of memberships) {
      if (left.get(cid)! > lastSeq) continue;
      const route = this.routes.get(cid) ?? this.createRoute(cid, lastSeq);
      route.limited = limited;
      user.silenced ||= silenced;
      join(route, user, lastSeq + 1);
    }
    // Also subscribes channels that another user's login is only about to subscribe.
    await this.#bus.subscribe(user.routes.map((route) => channels.conversation(route.cid)));
    return memberships;
  }

  detach(session: LiveSession): void {
    const { user } = session;
    if (!user) return;
    user.sessions = user.sessions.filter((s) => s !== session);
    if (user.sessions.length === 0) this.#forget(user);
  }

  #forget(user: LocalUser): void {
    if (this.users.get(user.no) !== user) return;
    this.users.delete(user.no);
    const gone = user.routes.flatMap((route) =>
      this.#leave(route, user) ? [channels.conversation(route.cid)] : [],
    );
    user.routes = [];
    this.#bus.unsubscribe([channels.user(user.no), ...gone]);
  }

  isOpen(route: Route): boolean {
    return this.routes.get(route.cid) === route;
  }

  /** How far the conversation is here, or was when its route ended; undefined if that is not remembered. */
  lastSeqOf(cid: string): number | undefined {
    return this.routes.get(cid)?.lastSeq ?? this.#ended.get(cid);
  }

  createRoute(cid: string, lastSeq: number): Route {
    const route: Route = {
      cid,
      lastSeq: Math.max(lastSeq, this.#ended.get(cid) ?? 0),
      users: [],
      from: [],
      limited: false,
      held: null,
    };
    this.#ended.delete(cid);
    this.routes.set(cid, route);
    return route;
  }

  /** The first seq that the user gets; undefined if it gets none. */
  fromOf(route: Route, user: LocalUser | undefined): number | undefined {
    return user && route.from[route.users.indexOf(user)];
  }

  /** The user left with this seq. Returns false if it is not connected here, or became a member later. */
  leave(route: Route, no: number, seq: number): boolean {
    const user = this.users.get(no);
    if (!user || !(this.fromOf(route, user)! <= seq)) return false;
    user.routes = user.routes.filter((r) => r !== route);
    if (this.#leave(route, user)) this.#bus.unsubscribe([channels.conversation(route.cid)]);
    return true;
  }

  /** Returns true if no user is left and the route has ended. */
  #leave(route: Route, user: LocalUser): boolean {
    const at = route.users.indexOf(user);
    if (at >= 0) {
      route.users.splice(at, 1);
      route.from.splice(at, 1);
    }
    if (route.users.length > 0 || !this.isOpen(route)) return false;
    this.#end(route);
    return true;
  }

  /** Ends a route whose users have all disconnected. */
  endRoute(route: Route): void {
    this.#end(route);
    this.#bus.unsubscribe([channels.conversation(route.cid)]);
  }

  #end(route: Route): void {
    this.routes.delete(route.cid);
    this.#ended.set(route.cid, route.lastSeq);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > mostEnded) this.#ended.delete(oldest!);
  }

  /** The store was restored to an earlier state: seqs continue from a lower number. */
  restart(): void {
    this.#ended.clear();
    for (const route of this.routes.values()) {
      route.lastSeq = 0;
      route.from.fill(0);
      route.held = null;
    }
  }
}

/** @param from the first seq that the user gets. Whoever is there already is still sent what the route has yet to send. */
export function join(route: Route, user: LocalUser, from: number): void {
  const at = route.users.indexOf(user);
  if (at < 0) {
    // Copied, as in `attach`: a group has few members.
    route.users = [...route.users, user];
    route.from = [...route.from, from];
    user.routes.push(route);
  } else if (from <= route.lastSeq + 1) route.from[at] = Math.max(route.from[at]!, from);
}

/** Sends an event of the route. */
export function sendEvent(route: Route, seq: number, frame: Buffer): void {
  const { users, from } = route;
  for (let i = 0; i < users.length; i++)
    if (from[i]! <= seq) for (const session of users[i]!.sessions) session.send(frame);
}

export function sendTo(users: readonly LocalUser[], frame: Buffer): void {
  for (const user of users) for (const session of user.sessions) session.send(frame);
}
