import { HistoryError } from '../../platform/history/port.ts';
import type { Queryable } from '../../platform/postgres/db.ts';

/**
 * Slots that are set aside: their database stopped the process that speaks with databases twice within an hour, or
 * the operator says so. Nothing connects to them for an hour, in no process and after no restart, but a test by hand
 * does. All times are of the store's clock.
 */

const hour = `interval '1 hour'`;

/** SQL of `aside` and `suspect` of a SlotRow, for slots `x` and their faults `f`. */
export const asideColumns = `CASE WHEN f.aside_until = 'infinity' THEN 'operator' WHEN f.aside_until > clock_timestamp()
  THEN to_char(f.aside_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END AS aside,
  coalesce(f.faulted_at > clock_timestamp() - ${hour}, false) AS suspect`;
export const joinFaults = 'LEFT JOIN slot_faults f ON f.env = x.env AND f.slot = x.slot';

/** Why a slot is not connected to; null if it is. */
export function asideOf({
  aside,
}: {
  aside: string | null;
}): { byOperator: boolean; error: HistoryError } | null {
  if (aside === null) return null;
  const byOperator = aside === 'operator';
  const why = byOperator
    ? 'the operator of this service did so'
    : `what it sent stopped the process that reads it twice within an hour. It is tried again at ${aside}, or when it is tested`;
  return { byOperator, error: new HistoryError('set_aside', undefined, why) };
}

/** Returns whether the slot is set aside from now on. */
export async function addFault(db: Queryable, env: number, slot: string): Promise<boolean> {
  const [row] = await db.query<{ aside: boolean }>(
    `INSERT INTO slot_faults AS f (env, slot, faulted_at) VALUES ($1, $2, clock_timestamp())
     ON CONFLICT (env, slot) DO UPDATE SET faulted_at = excluded.faulted_at,
       aside_until = CASE WHEN f.faulted_at > clock_timestamp() - ${hour} THEN greatest(f.aside_until, clock_timestamp() + ${hour}) ELSE f.aside_until END
     RETURNING coalesce(f.aside_until > clock_timestamp(), false) AS aside`,
    [env, slot],
  );
  return row!.aside;
}

/** The slot may be used again, at once; its last fault still counts for an hour. What the operator set aside stays so. */
export const takeBack = (db: Queryable, env: number, slot: string): Promise<unknown> =>
  db.query(
    `WITH taken AS (UPDATE slot_faults SET aside_until = NULL WHERE env = $1 AND slot = $2 AND aside_until < 'infinity' RETURNING env)
     UPDATE storage s SET due_at = '-infinity' FROM taken WHERE s.env = taken.env AND s.env = $1`,
    [env, slot],
  );
