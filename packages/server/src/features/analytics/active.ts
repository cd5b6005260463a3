import { ApiError } from '@parley/protocol';
import type { Plan, PlanName } from '@parley/protocol';
import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';

/** The fields of an environment that matter here. */
interface Tenant {
  no: number;
  plan: PlanName;
}

/**
 * Who is active, and whom the plan's ceiling of monthly active users admits (DECISIONS, Analytics and usage).
 * Messages and reads are recorded by the statements that commit them; this file handles connections and calls, and the check
 * whether a user is new in the month.
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
  /** Throws plan_limit_reached if the month has no room for the user, who does not count as active by what follows. */
  admit(env: Tenant, user: number): Promise<void>;
  /** The ceiling that the transaction of an action must check; null if there is none, or the user is known. */
  ceiling(env: Tenant, user: number): number | null;
  /** The transaction of an action was committed, so the user is counted. */
  known(user: number): void;
  /** Runs an action; if it is refused, runs it once more after recent activity, which may include the user's, was counted. */
  secondLook<T>(run: () => Promise<T>): Promise<T>;
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

  type Item = { env: number; user: number; limit: number | null };
  async function noteAll(on: Queryable, items: readonly Item[]): Promise<boolean[]> {
    const [row] = await on.query<{ admitted: boolean[] }>('SELECT note_connected($1, $2, $3) AS admitted', [
      items.map((i) => i.env),
      items.map((i) => i.user),
      items.map((i) => i.limit),
    ]);
    return row!.admitted;
  }
  const { add: note } = createBatcher<Item, boolean>({
    maxBatch: 500,
    maxWaiting: 50_000,
    pace: readPace(),
    run: (items) => noteAll(db, items),
  });

  const ceiling: ActiveUsers['ceiling'] = (env, user) => {
    const { mauLimit } = plans[env.plan];
    return mauLimit === null || inMonth.has(user, month()) ? null : mauLimit;
  };
  const known = (user: number): void => inMonth.add(user, month());

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
    ceiling,
    known,
    secondLook,
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
      const limit = ceiling(env, user);
      if (limit === null) return;
      await catchUp();
      const [row] = await db.query<{ verdict: string }>('SELECT month_admits($1, $2, $3) AS verdict', [
        env.no,
        user,
        limit,
      ]);
      if (row!.verdict === 'full') throw monthIsFull();
    },
    async acting(on, env, user, act) {
      // Not a second look: a refused transaction that is part of a larger one would still hold the month.
      if (ceiling(env, user) !== null) await catchUp();
      return on.tx(async (tx) => {
        const [admitted] = await noteAll(tx, [{ env: env.no, user, limit: ceiling(env, user) }]);
        if (!admitted) throw monthIsFull();
        tx.afterCommit(() => known(user));
        return act(tx);
      });
    },
  };
}

const monthIsFull = (): ApiError =>
  new ApiError('plan_limit_reached', {
    message: 'The plan has no room for more active users in this month.',
  });
