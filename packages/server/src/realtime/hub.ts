import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import type { LogEvent } from '../log/events.ts';
import type { Timers } from '../platform/clock.ts';
import type { Logger } from '../platform/logging.ts';
import { createEphemeral } from './ephemeral.ts';
import { Recovery } from './recovery.ts';
import type { RecoveryOptions } from './recovery.ts';
import { Registry } from './registry.ts';
import type { Membership } from './registry.ts';
import { createRouteOrder } from './route-order.ts';
import type { LiveSession, LocalUser } from './local-user.ts';

/**
 * Fan-out on one node: which open sockets get an event, and in which order. A conversation with a connected member on
 * this node has a route (`registry.ts`). Its events come from this node's own commits and, through the bus, from other
 * nodes; they go out in seq order (`route-order.ts`), and what does not come is read (`recovery.ts`).
 */
export class Hub {
  /** The users and conversations of this node. */
  readonly registry: Registry;
  readonly #recovery: Recovery;
  /** Takes an event that this node or another committed. */
  readonly received: (event: LogEvent) => void;
  readonly #bus: NodeBus;
  /** For frames outside the seq stream. */
  readonly ephemeral: ReturnType<typeof createEphemeral>;
  /** Called when a message that this node committed goes out to sockets here. */
  onFanout: (env: number) => void = () => undefined;

  constructor(options: {
    bus: NodeBus;
    timers: Timers;
    logger: Logger;
    memberships: (env: number, user: number) => Promise<Membership[]>;
    missed: RecoveryOptions['missed'];
    /**
     * Called when a user lost a membership, so that whom the user may watch, and who may watch the user, has changed.
     * The user may have no session here.
     */
    onLeave?: (user: number, sessions: readonly LiveSession[]) => void;
  }) {
    const { bus, timers, logger, missed, onLeave } = options;
    this.#bus = bus;
    const registry = (this.registry = new Registry(bus, options.memberships));
    const received = (event: LogEvent): void => this.received(event);
    const left = (user: number): void => onLeave?.(user, registry.users.get(user)?.sessions ?? []);
    const reading = { registry, bus, timers, logger, missed, received, onLeave: left };
    const recovery = (this.#recovery = new Recovery(reading));
    this.received = createRouteOrder({ registry, recovery, timers, isAlone: () => bus.alone, onLeave: left });
    this.ephemeral = createEphemeral(registry.users, registry.routes, bus);
    bus.on('event', received);
  }

  /** Runs after a commit on this node: sends the event to the sockets here and to the other nodes. */
  publish(event: LogEvent): void {
    if (event.e === 'message.new' && this.registry.routes.has(event.cid)) this.onFanout(event.env);
    this.received(event);
    if (this.#bus.alone) return;
    const users = [...(event.join ?? []), ...(event.leave ?? [])].map(channels.user);
    this.#bus.publish('event', event, channels.conversation(event.cid), ...users);
  }

  /** Another node may have committed something without this one hearing of it. */
  catchUp(): Promise<void> {
    return this.#recovery.catchUp();
  }

  /** True if this node's routes say that the user is a member. */
  isMember(user: LocalUser, cid: string): boolean {
    return this.registry.routes.get(cid)?.users.includes(user) ?? false;
  }

  /** Not every member may type there from now on. */
  limit(cid: string): void {
    const route = this.registry.routes.get(cid);
    if (route) route.limited = true;
  }

  /** Whether only the store knows if the user may type there (presence#typing-limits). */
  mayNotType(user: LocalUser, cid: string): boolean {
    return user.silenced || (this.registry.routes.get(cid)?.limited ?? false);
  }
}
