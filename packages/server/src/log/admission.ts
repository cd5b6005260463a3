import { ApiError } from '@parley/protocol';
import type { Db, Tx } from '../platform/postgres/db.ts';

/**
 * An action of a user, under a plan with a ceiling, of whom this process does not know that the user is counted in
 * this month.
 */
export interface Acting {
  env: number;
  user: number;
  ceiling: number;
}

/**
 * Runs the action in a transaction that locks the environment's month: the user is counted exactly if the action is
 * committed, and refused exactly if the month is full (features/analytics/sql/active_users.sql).
 * @param counts tells from the answer whether the action was done.
 */
export function admitted<A>(
  db: Db,
  { env, user, ceiling }: Acting,
  act: (tx: Tx) => Promise<A>,
  counts: (answer: A) => boolean,
): Promise<A | ApiError> {
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
    if (row!.verdict === 'room' && counts(answer))
      await tx.query('SELECT count_in_month($1, $2)', [env, user]);
    return answer;
  });
}
