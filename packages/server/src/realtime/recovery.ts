import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import type { LogEvent } from '../log/events.ts';
import { sleep } from '../platform/clock.ts';
import type { Timers } from '../platform/clock.ts';
import { LatestOnly } from '../platform/flow/latest-only.ts';
import { WaitingQuota } from '../platform/flow/waiting-quota.ts';
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
 * - A node fell silent, or the bus was lost for a while: every user here is compared with the store, then the routes that
 *   are still behind are read. A membership that the store does not name, and that no event ended, ends then.
 *
 * Where too much is missing, or the store does not answer, clients are told to sync (`resync_required`). Users are compared
 * again until the store answers.
 */

/** Milliseconds in which what is on its way arrives: an event that comes too early is held for so long. */
export const holdMs = 250;
/** How many users' conversations are read together. */
const comparedAtOnce = 100;
/** How many routes read late events at a time, of one environment and in all, and for how long. Beyond that, clients read them. */
const filling = { ofOne: 16, inAll: 32 };
const fillMs = 1_000;
/** Milliseconds after which users are compared again if the store did not answer. */
const againMs = 1_000;

export interface RecoveryOptions {
  registry: Registry;
  bus: NodeBus;
  timers: Timers;
  logger: Logger;
  /** Events after a seq; null if there are too many. */
  missed: (env: number, cid: string, after: number) => Promise<LogEvent[] | null>;
  /** Takes an event that was read, like one from the bus. */
  received: (event: LogEvent) => void;
  /** A membership ended without an event. */
  onLeave: (user: number) => void;
}

/** What the store says of the routes of users. */
interface Compared {
  /** Routes that are behind the store, and the seq that they have to reach. */
  behind: Map<Route, number>;
  /** Memberships that the store does not name, with the first seq that the user gets by each. */
  ended: { user: LocalUser; route: Route; from: number }[];
}

export class Recovery {
  readonly #options: RecoveryOptions;
  /** Users whose memberships are about to be compared with the store. */
  readonly #rechecking = new Set<LocalUser>();
  readonly #filling = new WaitingQuota(filling);
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
    if (!this.#filling.enter(env)) return;
    const { missed, received, timers, logger } = this.#options;
    const read = missed(env, route.cid, route.lastSeq)
      .then((events) => events?.forEach(received))
      .catch((error: unknown) => logger.warn({ err: error, cid: route.cid }, 'reading a late event failed'))
      .finally(() => this.#filling.leave(env));
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
      await this.#compare(user, { behind: new Map(), ended: [] });
    } catch (error) {
      logger.warn({ err: error, user: user.no }, 'comparing memberships after a late join failed');
      timers.after(againMs, () => void this.recheck(user));
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
    const { registry, timers, logger, onLeave } = this.#options;
    try {
      const found: Compared = { behind: new Map(), ended: [] };
      const users = [...registry.users.values()];
      for (let i = 0; i < users.length; i += comparedAtOnce)
        await Promise.all(users.slice(i, i + comparedAtOnce).map((user) => this.#compare(user, found)));
      // Events that are only on their way arrive meanwhile.
      await sleep(timers, holdMs);
      for (const [route, lastSeq] of found.behind)
        if (route.lastSeq < lastSeq && registry.isOpen(route) && route.users.length > 0)
          await this.#read(route, route.users[0]!.env);
      for (const { user, route, from } of found.ended)
        if (registry.fromOf(route, user) === from && registry.leave(route, user.no, Infinity))
          onLeave(user.no);
    } catch (error) {
      logger.warn({ err: error }, 'catching up with another node failed');
      timers.after(againMs, () => void this.catchUp());
    }
  }

  /** Loads the user's memberships again, and finds routes that are behind the store. */
  async #compare(user: LocalUser, { behind, ended }: Compared): Promise<void> {
    const { registry } = this.#options;
    const isHere = (): boolean => registry.users.get(user.no) === user;
    // What is being read may be older than what was missed. A login that fails ends its user.
    while (user.loading && isHere()) await user.loading.done.catch(() => undefined);
    if (!isHere()) return;
    const known = user.routes.map((route) => ({ user, route, from: registry.fromOf(route, user)! }));
    const left = new Map<string, number>();
    const loaded = registry.load(user, left);
    const done = loaded.then(
      () => undefined,
      () => undefined,
    );
    user.loading = { left, done };
    void done.then(() => (user.loading = null));
    const lastSeqs = new Map((await loaded).map(({ cid, lastSeq }) => [cid, lastSeq]));
    if (!isHere()) return;
    // The user was added to a conversation without being told.
    if (user.routes.some((route) => lastSeqs.has(route.cid) && !known.some((one) => one.route === route)))
      sendTo([user], pushFrame('resync_hint', {}));
    for (const one of known) {
      // For a conversation that the user has left, the last events must still be sent.
      const lastSeq = lastSeqs.get(one.route.cid) ?? Infinity;
      if (one.route.lastSeq < lastSeq) behind.set(one.route, Math.max(lastSeq, behind.get(one.route) ?? 0));
      if (lastSeq === Infinity) ended.push(one);
    }
  }
}
