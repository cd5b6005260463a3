import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import type { LogEvent } from '../log/events.ts';
import { sleep } from '../platform/clock.ts';
import type { Timers } from '../platform/clock.ts';
import { LatestOnly } from '../platform/flow/latest-only.ts';
import type { Logger } from '../platform/logging.ts';
import { sendTo } from './registry.ts';
import type { Registry } from './registry.ts';
import type { LocalUser, Route } from './local-user.ts';
import { pushFrame } from './wire.ts';

/**
 * What the bus did not bring is read from the store. Four things cause it:
 *
 * - An event of a route is late: later ones are held --`holdMs` later the store is asked--> in order.
 * - A route begins with a join: following --the channel is subscribed, what came before is read--> in order.
 * - A join came after later events: the user is rechecked --`holdMs` later the store is asked--> a member, told to sync,
 *   or not.
 * - A node fell silent: every user here is compared with the store, then the routes that are still behind are read.
 *
 * Where too much is missing, or the store does not answer, clients are told to sync (`resync_required`).
 */

/** Milliseconds in which what is on its way arrives: an event that comes too early is held for so long. */
export const holdMs = 250;
/** How many users' conversations are read together. */
const comparedAtOnce = 100;
/** How many routes read a late event at a time, and for how long. Beyond that, clients read it. */
const mostFilling = 32;
const fillMs = 1_000;

export interface RecoveryOptions {
  registry: Registry;
  bus: NodeBus;
  timers: Timers;
  logger: Logger;
  /** Events after a seq; null if there are too many. */
  missed: (env: number, cid: string, after: number) => Promise<LogEvent[] | null>;
  /** Takes an event that was read, like one from the bus. */
  received: (event: LogEvent) => void;
}

export class Recovery {
  readonly #options: RecoveryOptions;
  /** Users whose memberships are about to be compared with the store. */
  readonly #rechecking = new Set<LocalUser>();
  #filling = 0;
  readonly #catchingUp = new LatestOnly<void, void>(() => this.#catchUp());

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** For a route made by a join: what was committed before the bus was subscribed is read from the store. */
  async follow(route: Route, env: number): Promise<void> {
    const { bus, logger } = this.#options;
    try {
      await bus.subscribe([channels.conversation(route.cid)]);
      if (!bus.alone) await this.#read(route, env);
    } catch (error) {
      logger.warn({ err: error, cid: route.cid }, 'catching up after a join failed');
      sendTo(route.users, pushFrame('resync_required', { cid: route.cid }));
    }
  }

  async #read(route: Route, env: number): Promise<void> {
    const missed = await this.#options.missed(env, route.cid, route.lastSeq);
    if (missed === null) sendTo(route.users, pushFrame('resync_required', { cid: route.cid }));
    else for (const later of missed) this.#options.received(later);
  }

  /** Reads what is missing before events that are held. One read here saves one of each client. */
  async fill(route: Route, env: number): Promise<void> {
    if (this.#filling === mostFilling) return;
    this.#filling++;
    const { missed, received, timers, logger } = this.#options;
    const read = missed(env, route.cid, route.lastSeq)
      .then((events) => events?.forEach(received))
      .catch((error: unknown) => logger.warn({ err: error, cid: route.cid }, 'reading a late event failed'))
      .finally(() => this.#filling--);
    await Promise.race([read, sleep(timers, fillMs)]);
  }

  /**
   * A join came after later events of its conversation, so the user was not sent these. In a moment, when what is on its
   * way has arrived, the store says whether the user is a member.
   */
  async recheck(user: LocalUser): Promise<void> {
    if (this.#rechecking.has(user)) return;
    this.#rechecking.add(user);
    const { timers, logger } = this.#options;
    try {
      await sleep(timers, holdMs);
      this.#rechecking.delete(user);
      await user.loading?.done;
      await this.#compare(user, new Map());
    } catch (error) {
      logger.warn({ err: error, user: user.no }, 'comparing memberships after a late join failed');
    }
  }

  /**
   * A node that is gone may have committed something without telling the others, so what users here have missed is
   * read from the store. Only one round runs at a time; requests made meanwhile cause one more round.
   */
  catchUp(): Promise<void> {
    return this.#catchingUp.run(undefined);
  }

  async #catchUp(): Promise<void> {
    const { registry, timers, logger } = this.#options;
    try {
      const behind = new Map<Route, number>();
      const users = [...registry.users.values()].filter((user) => user.loading === null);
      for (let i = 0; i < users.length; i += comparedAtOnce)
        await Promise.all(users.slice(i, i + comparedAtOnce).map((user) => this.#compare(user, behind)));
      // Events that are only on their way arrive meanwhile.
      await sleep(timers, holdMs);
      for (const [route, lastSeq] of behind)
        if (route.lastSeq < lastSeq && registry.isOpen(route) && route.users.length > 0)
          await this.#read(route, route.users[0]!.env);
    } catch (error) {
      logger.warn({ err: error }, 'catching up with another node failed');
    }
  }

  /** Loads the user's memberships again, and finds routes that are behind the store. */
  async #compare(user: LocalUser, behind: Map<Route, number>): Promise<void> {
    const { registry } = this.#options;
    if (user.loading !== null || registry.users.get(user.no) !== user) return;
    const known = [...user.routes];
    const left = new Set<string>();
    const loaded = registry.load(user, left);
    const done = loaded.then(
      () => undefined,
      () => undefined,
    );
    user.loading = { left, done };
    void done.then(() => (user.loading = null));
    const lastSeqs = new Map((await loaded).map(({ cid, lastSeq }) => [cid, lastSeq]));
    // The user was added to a conversation without being told.
    if (user.routes.some((route) => !known.includes(route) && lastSeqs.has(route.cid)))
      sendTo([user], pushFrame('resync_hint', {}));
    // For a conversation that the user has left, the last events must still be sent.
    for (const route of known) {
      const lastSeq = lastSeqs.get(route.cid) ?? Infinity;
      if (route.lastSeq < lastSeq) behind.set(route, lastSeq);
    }
  }
}
