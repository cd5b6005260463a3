import type { LogEvent } from '../log/events.ts';
import type { Timers } from '../platform/clock.ts';
import { holdMs } from './recovery.ts';
import type { Recovery } from './recovery.ts';
import { join, sendTo } from './registry.ts';
import type { Registry } from './registry.ts';
import type { Route } from './local-user.ts';
import { textFrame } from './wire.ts';

/**
 * The order of a route: events of a conversation go out in seq order, whichever way they come.
 *
 * in order --an event comes too early--> holding --the missing events come, `holdMs` pass, or too many are held--> in
 * order. Then the held events go out in order; if some are still missing, the client repairs the gap (sdk#gap). An event at or below the route's last seq is a duplicate.
 */

/** How many events of one conversation are held; beyond this they go out at once. */
const maxHeld = 200;

export class RouteOrder {
  readonly #registry: Registry;
  readonly #recovery: Recovery;
  readonly #timers: Timers;
  /** True if there is no other node, whose events could come between. */
  readonly #isAlone: () => boolean;
  readonly #onLeave: (user: number) => void;

  constructor(options: {
    registry: Registry;
    recovery: Recovery;
    timers: Timers;
    isAlone: () => boolean;
    onLeave: (user: number) => void;
  }) {
    this.#registry = options.registry;
    this.#recovery = options.recovery;
    this.#timers = options.timers;
    this.#isAlone = options.isAlone;
    this.#onLeave = options.onLeave;
  }

  received(event: LogEvent): void {
    const { users, routes } = this.#registry;
    const joining = event.join?.flatMap((no) => users.get(no) ?? []) ?? [];
    for (const no of event.leave ?? []) users.get(no)?.loading?.left.add(event.cid);
    let route = routes.get(event.cid);
    if (event.seq <= (this.#registry.lastSeqOf(event.cid) ?? 0)) {
      for (const user of joining) if (!route?.users.includes(user)) void this.#recovery.recheck(user);
      return;
    }
    if (!route) {
      if (joining.length === 0) return;
      route = this.#registry.createRoute(event.cid, this.#before(event));
      void this.#recovery.follow(route, event.env);
    }
    if (event.seq > route.lastSeq + 1) this.#hold(route, event);
    else this.#apply(route, event);
  }

  /**
   * Where a route begins that is made by a join: just before it or, if the conversation had a route a while ago, where
   * that ended. Users may have joined and left on other nodes in between; that is read, and the join is held meanwhile.
   */
  #before({ cid, seq }: LogEvent): number {
    const ended = this.#registry.lastSeqOf(cid);
    return ended === undefined || this.#isAlone() || seq - ended > maxHeld ? seq - 1 : ended;
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
      if (!this.#registry.isOpen(route)) this.received(event);
      else if (event.seq > route.lastSeq) this.#apply(route, event);
    }
  }

  #apply(route: Route, event: LogEvent): void {
    route.lastSeq = event.seq;
    route.limited = event.limited ?? route.limited;
    for (const no of event.join ?? []) {
      const user = this.#registry.users.get(no);
      if (user) join(route, user);
    }
    if (route.users.length > 0) sendTo(route.users, textFrame(event.frame));
    for (const no of event.leave ?? []) this.#leave(route, no);
    if (event.e === 'conversation.deleted') for (const user of [...route.users]) this.#leave(route, user.no);
    // No user is left; one of the held events may add a user again.
    if (!this.#registry.isOpen(route)) return this.#release(route);
    const next = route.held?.get(event.seq + 1);
    if (next) {
      route.held!.delete(next.seq);
      if (route.held!.size === 0) route.held = null;
      this.#apply(route, next);
    } else if (route.users.length === 0 && route.held === null) {
      // Who was to join with a held event has disconnected meanwhile.
      this.#registry.endRoute(route);
    }
  }

  #leave(route: Route, no: number): void {
    this.#registry.leave(route, no);
    this.#onLeave(no);
  }
}
