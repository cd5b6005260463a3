import { ApiError } from '@parley/protocol';
import type { Plan, PlanName } from '@parley/protocol';
import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';
import { countInMonth, monthVerdicts, noteConnected } from './sql.ts';
import type { Activity } from './sql.ts';

/** The fields of an environment that matter here. */
interface Tenant {
  no: number;
  plan: PlanName;
}

/**
 * Who is active, and whom the plan's ceiling of monthly active users admits (analytics#active).
 * Messages and reads are recorded by the statements that commit them; a user who is new in the month is checked before
 * and counted after. Users who act at the same moment do not see each other, so together they may pass the ceiling. A
 * user whom a crash kept from being counted is counted with the recorded activity. Connections and calls are counted
 * exactly.
 *
 * Under a plan without a ceiling nothing is looked up. Under one with a ceiling each process looks a user up once a
 * month; after that the user is known, and is not refused before the month ends.
 */
export interface ActiveUsers {
  /** Records that the user is connected, or throws plan_limit_reached. */
  connected(env: Tenant, user: number): Promise<void>;
  /**
   * Runs an action in a transaction that records the user as active, or throws plan_limit_reached: the user is counted exactly
   * when the action is committed. The month is locked first, before anything that others lock who are about to be counted.
   */
  acting<T>(db: Db, env: Tenant, user: number, act: (tx: Tx) => Promise<T>): Promise<T>;
  /** Throws plan_limit_reached if the month has no room for the user. */
  admit(env: Tenant, user: number): Promise<void>;
  /** Counts a user whom `admit` let in, and who acted. */
  acted(env: Tenant, user: number): Promise<void>;
}

/** How many users a process remembers; beyond that it forgets them all, and looks them up again. */
const mostRemembered = 1_000_000;

/** Users seen in the present hour or month. */
class Seen {
  readonly #users = new Set<number>();
  #period = '';

  has(user: number, period: string): boolean {
    if (period !== this.#period) {
      this.#users.clear();
      this.#period = period;
    }
    return this.#users.has(user);
  }

  add(user: number, period: string): void {
    if (this.has(user, period)) return;
    if (this.#users.size >= mostRemembered) this.#users.clear();
    this.#users.add(user);
  }
}

export function createActiveUsers(options: {
  db: Queryable;
  clock: Clock;
  plans: Record<PlanName, Plan>;
  /** Counts what was recorded before. */
  catchUp: () => Promise<void>;
}): ActiveUsers {
  const { db, clock, plans, catchUp } = options;
  const inHour = new Seen();
  const inMonth = new Seen();
  const hour = (): string => new Date(clock.now()).toISOString().slice(0, 13);
  const month = (): string => new Date(clock.now()).toISOString().slice(0, 7);

  const bounds = { maxBatch: 500, maxWaiting: 50_000 };
  const { add: note } = createBatcher<Activity, boolean>({
    ...bounds,
    pace: readPace(),
    run: (items) => noteConnected(db, items),
  });
  const { add: check } = createBatcher<Activity, string>({
    ...bounds,
    pace: readPace(),
    run: (items) => monthVerdicts(db, items),
  });
  const { add: count } = createBatcher<Activity, void>({
    ...bounds,
    run: async (items) => {
      await countInMonth(db, items);
      return items.map(() => undefined);
    },
  });

  /** The ceiling to check; null if there is none, or the user is known. */
  const ceiling = (env: Tenant, user: number): number | null => {
    const { mauLimit } = plans[env.plan];
    return mauLimit === null || inMonth.has(user, month()) ? null : mauLimit;
  };
  const known = (user: number): void => inMonth.add(user, month());

  /** The last check of each user that is under way: messages that a user sends one after the other stay in their order. */
  const admitting = new Map<number, Promise<void>>();
  const admitOne = (env: Tenant, user: number): Promise<void> =>
    secondLook(async () => {
      const limit = ceiling(env, user);
      if (limit === null) return;
      const verdict = await check({ env: env.no, user, limit });
      if (verdict === 'full') throw monthIsFull();
      if (verdict === 'known') known(user);
    });

  /** Runs an action; if it is refused, runs it once more after recent activity, which may include the user's, was counted. */
  async function secondLook<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'plan_limit_reached')) throw error;
      await catchUp();
      return run();
    }
  }

  return {
    async connected(env, user) {
      const at = hour();
      if (inHour.has(user, at)) return;
      await secondLook(async () => {
        const limit = ceiling(env, user);
        if (!(await note({ env: env.no, user, limit }))) throw monthIsFull();
      });
      known(user);
      inHour.add(user, at);
    },
    async admit(env, user) {
      const before = admitting.get(user);
      if (before === undefined && ceiling(env, user) === null) return;
      const mine = (before ?? Promise.resolve()).catch(() => undefined).then(() => admitOne(env, user));
      admitting.set(user, mine);
      try {
        await mine;
      } finally {
        if (admitting.get(user) === mine) admitting.delete(user);
      }
    },
    async acted(env, user) {
      const limit = ceiling(env, user);
      if (limit === null) return;
      // The act is committed and recorded, so the user is counted later if not now.
      await count({ env: env.no, user, limit }).then(
        () => known(user),
        () => undefined,
      );
    },
    async acting(on, env, user, act) {
      // Not a second look: a refused transaction that is part of a larger one would still hold the month.
      if (ceiling(env, user) !== null) await catchUp();
      return on.tx(async (tx) => {
        const [admitted] = await noteConnected(tx, [{ env: env.no, user, limit: ceiling(env, user) }]);
        if (!admitted) throw monthIsFull();
        tx.afterCommit(() => known(user));
        return act(tx);
      });
    },
  };
}

const monthIsFull = (): ApiError =>
  new ApiError('plan_limit_reached', {
    message: 'The plan allows no more active users in this month.',
  });
