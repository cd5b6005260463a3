import { ApiError } from '@parley/protocol';
import type { Db, Queryable, Tx } from '../platform/postgres/db.ts';
import { blocked } from './lanes.ts';
import type { Blocked } from './lanes.ts';

/**
 * An action of a user, under a plan with a ceiling, of whom this process does not know that the user is counted in
 * this month.
 */
interface Acting {
  env: number;
  user: number;
  ceiling: number;
}

interface MaybeActing {
  env: number;
  conversationId: string;
  ceiling?: number | null;
}

/** Whether the month must be asked about the user of this item. That takes longer than committing the item. */
export const isToBeCounted = (item: MaybeActing): boolean => typeof item.ceiling === 'number';

/**
 * Commits items in their order: together as many as follow each other, but each one of a user who is new in this month
 * in a transaction of its own that also counts the user. That happens once a month for each user, or as often as the
 * action is refused.
 * @param counts tells from the answer whether the action was done.
 */
export async function countedFirst<I extends MaybeActing, A>(
  db: Db,
  items: I[],
  userOf: (item: I) => number | null,
  commit: (db: Queryable, items: I[]) => Promise<(A | Blocked)[]>,
  counts: (answer: A) => boolean,
): Promise<(A | ApiError | Blocked)[]> {
  const asked = items.filter((item) => isToBeCounted(item) && userOf(item) !== null);
  if (asked.length === 0) return commit(db, items);
  const rows = await db.query<{ known: boolean }>(
    `SELECT active_in_month(w.env, date_trunc('month', now(), 'UTC'), w.usr) AS known
     FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS w(env, usr, ord) ORDER BY w.ord`,
    [asked.map((item) => item.env), asked.map(userOf)],
  );
  const fresh = new Set(asked.filter((_, i) => !rows[i]!.known));
  const answers = new Map<I, A | ApiError | Blocked>();
  /** Conversations of which an item could not be committed: what follows it there must not overtake it. */
  const shut = new Set<string>();
  const keyOf = (item: I): string => `${item.env} ${item.conversationId}`;
  for (const some of inRuns(items, (item) => fresh.has(item))) {
    const free = some.filter((item) => !shut.has(keyOf(item)));
    if (free.length === 0) continue;
    const [first] = free as [I];
    const acting = { env: first.env, user: userOf(first)!, ceiling: first.ceiling! };
    const given: (A | ApiError | Blocked)[] = fresh.has(first)
      ? [await admitted(db, acting, async (tx) => (await commit(tx, [first]))[0]!, counts)]
      : await commit(db, free);
    free.forEach((item, i) => {
      answers.set(item, given[i]!);
      if (given[i] === blocked) shut.add(keyOf(item));
    });
  }
  return items.map((item) => answers.get(item) ?? blocked);
}

/** Splits the items into runs: one that goes alone is a run of its own. */
function inRuns<I>(items: readonly I[], alone: (item: I) => boolean): I[][] {
  const runs: I[][] = [];
  let open = false;
  for (const item of items) {
    if (open && !alone(item)) runs.at(-1)!.push(item);
    else runs.push([item]);
    open = !alone(item);
  }
  return runs;
}

/**
 * Runs the action in a transaction that locks the environment's month: the user is counted exactly if the action is
 * committed, and refused exactly if the month is full (features/analytics/sql/active_users.sql).
 * @param counts tells from the answer whether the action was done.
 */
function admitted<A>(
  db: Db,
  { env, user, ceiling }: Acting,
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
