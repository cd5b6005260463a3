import type { LogEvent } from '../log/events.ts';
import type { Timers } from '../platform/clock.ts';
import { holdMs } from './recovery.ts';
import type { Recovery } from './recovery.ts';
import { join, sendEvent } from './registry.ts';
import type { Registry } from './registry.ts';
import type { Route } from './local-user.ts';
import { textFrame } from './wire.ts';

/**
 * The order of a route: events of a conversation go out in seq order, whichever way they come.
 *
 * in order --an event comes too early--> holding --the missing events come--> in order
 *                                        holding --`holdMs` pass--> reading the missing events --read, or not to be had--> in order
 *                                        holding or reading --too many are held--> in order
 *
 * What was held then goes out in order; if some events are still missing, the client repairs the gap (sdk#gap). An event
 * at or below the route's last seq is a duplicate.
 */

/** How many events of one conversation are held; beyond this they go out at once. */
const maxHeld = 200;

/** Returns the function that takes the events of all conversations. */
export function createRouteOrder(options: {
  registry: Registry;
  recovery: Recovery;
  timers: Timers;
  /** True if there is no other node, whose events could come between. */
  isAlone: () => boolean;
  onLeave: (user: number) => void;
}): (event: LogEvent) => void {
  const { registry, recovery, timers, isAlone, onLeave } = options;

  function received(event: LogEvent): void {
    const { users, routes } = registry;
    const joining = event.join?.flatMap((no) => users.get(no) ?? []) ?? [];
    for (const no of event.leave ?? []) {
      const left = users.get(no)?.loading?.left;
      left?.set(event.cid, Math.max(event.seq, left.get(event.cid) ?? 0));
    }
    let route = routes.get(event.cid);
    if (event.seq <= (registry.lastSeqOf(event.cid) ?? 0)) {
      for (const user of joining)
        if (route?.users.includes(user)) join(route, user, event.seq);
        else void recovery.recheck(user);
      // Later events went out before it.
      if (route) for (const no of event.leave ?? []) if (registry.leave(route, no, event.seq)) onLeave(no);
      if (route && !registry.isOpen(route)) release(route);
      return;
    }
    if (!route) {
      if (joining.length === 0) return;
      route = registry.createRoute(event.cid, before(event));
      void recovery.follow(route, event.env);
    }
    if (event.seq > route.lastSeq + 1) hold(route, event);
    else apply(route, event);
  }

  /**
   * Where a route begins that is made by a join: just before it or, if the conversation had a route a while ago, where
   * that ended. Users may have joined and left on other nodes in between; that is read, and the join is held meanwhile.
   */
  function before({ cid, seq }: LogEvent): number {
    const ended = registry.lastSeqOf(cid);
    return ended === undefined || isAlone() || seq - ended > maxHeld ? seq - 1 : ended;
  }

  function hold(route: Route, event: LogEvent): void {
    const held = (route.held ??= newHeld(route, event.env));
    held.set(event.seq, event);
    if (held.size > maxHeld) release(route);
  }

  function newHeld(route: Route, env: number): Map<number, LogEvent> {
    const held = new Map<number, LogEvent>();
    timers.after(holdMs, () => {
      if (route.held === held) void fill(route, env);
    });
    return held;
  }

  async function fill(route: Route, env: number): Promise<void> {
    const { held } = route;
    await recovery.fill(route, env);
    if (route.held === held) release(route);
  }

  /** The missing events neither came nor could be read: the held ones go out in order. */
  function release(route: Route): void {
    const { held } = route;
    route.held = null;
    for (const event of [...(held?.values() ?? [])].sort((a, b) => a.seq - b.seq)) {
      if (!registry.isOpen(route)) received(event);
      else if (event.seq > route.lastSeq) apply(route, event);
    }
  }

  function apply(route: Route, event: LogEvent): void {
    const leave = (no: number): void => {
      registry.leave(route, no, event.seq);
      onLeave(no);
    };
    route.lastSeq = event.seq;
    route.limited = event.limited ?? route.limited;
    for (const no of event.join ?? []) {
      const user = registry.users.get(no);
      if (user) join(route, user, event.seq);
    }
    if (route.users.length > 0) sendEvent(route, event.seq, textFrame(event.frame));
    for (const no of event.leave ?? []) leave(no);
    if (event.e === 'conversation.deleted') for (const user of [...route.users]) leave(user.no);
    // No user is left; one of the held events may add a user again.
    if (!registry.isOpen(route)) return release(route);
    const next = route.held?.get(event.seq + 1);
    if (next) {
      route.held!.delete(next.seq);
      if (route.held!.size === 0) route.held = null;
      apply(route, next);
    } else if (route.users.length === 0 && route.held === null) {
      // Who was to join with a held event has disconnected meanwhile.
      registry.endRoute(route);
    }
  }

  return received;
}
