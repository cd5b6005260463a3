import { ApiError } from '@parley/protocol';
import type { Db, Queryable, Tx } from '../platform/postgres/db.ts';
import { blocked } from './lanes.ts';
import type { Blocked } from './lanes.ts';

/**
 * Actions of users under a plan with a ceiling of monthly active users (features/analytics/sql/active_users.sql). A user
 * is counted exactly if an action of it is committed, and refused exactly if the month is full.
 */

interface Action {
  env: number;
  conversationId: string;
  /** The plan's ceiling, if this process does not know that the user is counted in this month. */
  ceiling?: number | null;
}

/** Whether the month must be asked about the user. That may take longer than committing the action. */
export const isToBeCounted = (action: Action): boolean => typeof action.ceiling === 'number';

export interface Committing<I extends Action, A> {
  db: Db;
  userOf: (item: I) => number | null;
  commit: (db: Queryable, items: I[]) => Promise<(A | Blocked)[]>;
  /** Tells from the answer whether the action was done. */
  counts: (answer: A) => boolean;
}

type Answers<A> = (A | ApiError | Blocked)[];

/**
 * Commits items in their order, and counts the users who are new in this month. The items of an environment share a
 * transaction if its month has room for all of them. If it is nearly full, each item of a new user has a transaction of
 * its own, so that nobody is refused because of a user who was not counted in the end.
 */
export async function commitCounted<I extends Action, A>(
  work: Committing<I, A>,
  items: I[],
): Promise<Answers<A>> {
  const { db, userOf, commit } = work;
  const asked = items.filter((item) => isToBeCounted(item) && userOf(item) !== null);
  if (asked.length === 0) return commit(db, items);
  const rows = await db.query<{ known: boolean }>(
    `SELECT active_in_month(w.env, date_trunc('month', now(), 'UTC'), w.usr) AS known
     FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS w(env, usr, ord) ORDER BY w.ord`,
    [asked.map((item) => item.env), asked.map(userOf)],
  );
  const fresh = new Set(asked.filter((_, i) => !rows[i]!.known));
  const growing = new Set([...fresh].map((item) => item.env));
  const answers = new Map<I, A | ApiError | Blocked>();
  const note = (some: I[], given: Answers<A>): void =>
    some.forEach((item, i) => answers.set(item, given[i]!));
  const others = items.filter((item) => !growing.has(item.env));
  if (others.length > 0) note(others, await commit(db, others));
  for (const env of growing) {
    const own = items.filter((item) => item.env === env);
    note(own, (await together(work, env, own, fresh)) ?? (await oneByOne(work, own, fresh)));
  }
  return items.map((item) => answers.get(item)!);
}

/** Commits the items of an environment in one transaction; null if its month has no room for all new users. */
function together<I extends Action, A>(
  { db, userOf, commit, counts }: Committing<I, A>,
  env: number,
  items: I[],
  fresh: ReadonlySet<I>,
): Promise<(A | Blocked)[] | null> {
  const newcomers = items.filter((item) => fresh.has(item));
  const ceiling = Math.min(...newcomers.map((item) => item.ceiling!));
  return db.tx(async (tx) => {
    const [month] = await tx.query<{ counted: number; fresh: number[] }>(
      'SELECT counted, fresh FROM month_room($1, $2)',
      [env, newcomers.map(userOf)],
    );
    const uncounted = new Set(month!.fresh.map(Number));
    if (month!.counted + uncounted.size > ceiling) return null;
    const answers = await commit(tx, items);
    const done = items.filter((_, i) => answers[i] !== blocked && counts(answers[i] as A));
    const acted = new Set(done.map(userOf));
    const counted = [...uncounted].filter((user) => acted.has(user));
    if (counted.length > 0) await tx.query('SELECT count_all_in_month($1, $2)', [env, counted]);
    return answers;
  });
}

/** How many items are committed one by one; the others have to come again, so that those who wait behind have their turn. */
const mostAlone = 20;

async function oneByOne<I extends Action, A>(
  { db, userOf, commit, counts }: Committing<I, A>,
  items: I[],
  fresh: ReadonlySet<I>,
): Promise<Answers<A>> {
  const answers: Answers<A> = [];
  /** Conversations of which an item could not be committed: what follows it there must not overtake it. */
  const shut = new Set<string>();
  for (const [i, item] of items.entries()) {
    const act = async (on: Queryable): Promise<A | Blocked> => (await commit(on, [item]))[0]!;
    const acting = { env: item.env, user: userOf(item)!, ceiling: item.ceiling! };
    const answer =
      i >= mostAlone || shut.has(item.conversationId)
        ? blocked
        : await (fresh.has(item) ? admitted(db, acting, act, counts) : act(db));
    if (answer === blocked) shut.add(item.conversationId);
    answers.push(answer);
  }
  return answers;
}

/** Runs the action in a transaction that locks the environment's month. */
function admitted<A>(
  db: Db,
  { env, user, ceiling }: { env: number; user: number; ceiling: number },
  act: (tx: Tx) => Promise<A | Blocked>,
  counts: (answer: A) => boolean,
): Promise<A | ApiError | Blocked> {
  return db.tx(async (tx) => {
    const [row] = await tx.query<{ verdict: string }>('SELECT month_admits($1, $2, $3) AS verdict', [
      env,
      user,
      ceiling,
    ]);
    if (row!.verdict === 'full')
      return new ApiError('plan_limit_reached', {
        message: 'The plan has no room for more active users in this month.',
      });
    const answer = await act(tx);
    if (row!.verdict === 'room' && answer !== blocked && counts(answer))
      await tx.query('SELECT count_in_month($1, $2)', [env, user]);
    return answer;
  });
}
