import type { Output } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { oneValue } from '../../../platform/postgres/rows.ts';

/** Faults of slots, and which slots are set aside (../connections.ts). */

const hour = `interval '1 hour'`;

/** SQL of `aside` and `suspect` of a SlotRow, for slots `x` and their faults `f`. */
export const asideColumns = `CASE WHEN f.aside_until = 'infinity' THEN 'operator' WHEN f.aside_until > clock_timestamp()
  THEN to_char(f.aside_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END AS aside,
  coalesce(f.faulted_at > clock_timestamp() - ${hour}, false) AS suspect`;
export const joinFaults = 'LEFT JOIN slot_faults f ON f.env = x.env AND f.slot = x.slot';

/** Returns whether the slot is set aside from now on. */
export const addFault = (db: Queryable, env: number, slot: string): Promise<boolean> =>
  oneValue(
    db,
    `INSERT INTO slot_faults AS f (env, slot, faulted_at) VALUES ($1, $2, clock_timestamp())
     ON CONFLICT (env, slot) DO UPDATE SET faulted_at = excluded.faulted_at,
       aside_until = CASE WHEN f.faulted_at > clock_timestamp() - ${hour} THEN greatest(f.aside_until, clock_timestamp() + ${hour}) ELSE f.aside_until END
     RETURNING coalesce(f.aside_until > clock_timestamp(), false) AS aside`,
    [env, slot],
  );

/** The slot may be used again, at once; its last fault still counts for an hour. What the operator set aside stays so. */
export const takeBack = (db: Queryable, env: number, slot: string): Promise<unknown> =>
  db.query(
    `WITH taken AS (UPDATE slot_faults SET aside_until = NULL WHERE env = $1 AND slot = $2 AND aside_until < 'infinity' RETURNING env)
     UPDATE storage s SET due_at = '-infinity' FROM taken WHERE s.env = taken.env AND s.env = $1`,
    [env, slot],
  );

/** Sets the slot aside until the operator takes it back, or takes it back. */
export async function setAside(db: Queryable, env: number, slot: string, aside: boolean): Promise<void> {
  await db.query(
    `INSERT INTO slot_faults AS f (env, slot, aside_until) VALUES ($1, $2, $3)
       ON CONFLICT (env, slot) DO UPDATE SET aside_until = excluded.aside_until`,
    [env, slot, aside ? 'infinity' : null],
  );
  // Its sink may be waiting after failures.
  await db.query(`UPDATE storage SET due_at = '-infinity' WHERE env = $1`, [env]);
}

/** The slots of an environment or, without one, of all. */
export const listSlots = (
  db: Queryable,
  env: number | null,
): Promise<Output<'storage.listSlots'>['data'][number][]> =>
  db.query(
    `SELECT e.id AS "environmentId", x.slot, x.type, x.shown_url AS url, coalesce(s.mode <> 'managed' AND s.active = x.slot, false) AS active,
       f.faulted_at AS "faultedAt", ${asideColumns}
     FROM storage_slots x JOIN environments e ON e.no = x.env LEFT JOIN storage s ON s.env = x.env ${joinFaults}
     WHERE $1::int IS NULL OR x.env = $1 ORDER BY x.env, x.slot`,
    [env],
  );
