import type { Erasure } from '../../../platform/history/port.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import type { SlotName } from '../sql.ts';

/** Erasures that must still reach customers' databases. The user's id is sealed. */

const most = 100;

/** Milliseconds until erasures that failed in a slot that is not in use are tried there again. */
const firstPauseMs = 1_000;
const longestPauseMs = 3_600_000;

/** SQL for whether a time at which something is due has come. One further away is from before the store's clock was set back. */
const come = (at: string) =>
  `${at} NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '${longestPauseMs} milliseconds'`;
/** SQL for whether environment `s` has erasures that wait for a database that may be tried, or for none any more. */
export const mustErase = (s: string): string =>
  `(SELECT true FROM sink_erasures e LEFT JOIN storage_slots x ON x.env = e.env AND x.slot = ANY (e.slots)
    WHERE e.env = ${s} AND (x.env IS NULL OR ${come('x.erase_due_at')}) LIMIT 1)`;

/** The next erasures of a slot; one that is not in use waits after failures. */
export const dueErasures = (
  db: Queryable,
  env: number,
  slot: SlotName,
  inUse: boolean,
): Promise<{ no: number; subject: Buffer; replacement: string; messages: Erasure['messages'] }[]> =>
  db.query(
    `SELECT e.no, e.subject, e.replacement, e.messages FROM sink_erasures e JOIN storage_slots x ON x.env = e.env AND x.slot = $2
       WHERE e.env = $1 AND $2 = ANY (e.slots) AND ($3 OR ${come('x.erase_due_at')}) ORDER BY e.no LIMIT ${most}`,
    [env, slot, inUse],
  );

/** The slot's database has erased the user, unless the slot was changed meanwhile. */
export const markErased = (db: Queryable, env: number, no: number, slot: SlotName, changedAt: string) =>
  db.query(
    `UPDATE sink_erasures SET slots = array_remove(slots, $3) WHERE env = $1 AND no = $2
             AND EXISTS (SELECT 1 FROM storage_slots x WHERE x.env = $1 AND x.slot = $3 AND x.changed_at = $4)`,
    [env, no, slot, changedAt],
  );

export const clearFailures = (db: Queryable, env: number, slot: SlotName) =>
  db.query(
    'UPDATE storage_slots SET erase_failures = 0, erase_error = NULL WHERE env = $1 AND slot = $2 AND erase_failures > 0',
    [env, slot],
  );

/** Puts the next try off, unless the slot was changed meanwhile. */
export const addFailure = (db: Queryable, env: number, slot: SlotName, error: string, changedAt: string) =>
  db.query(
    `UPDATE storage_slots SET erase_failures = erase_failures + 1, erase_error = $3, erase_due_at = clock_timestamp() +
           least(${longestPauseMs}, ${firstPauseMs} * 2 ^ least(erase_failures, 20)) * interval '1 millisecond'
         WHERE env = $1 AND slot = $2 AND changed_at = $4`,
    [env, slot, error, changedAt],
  );

/** Removes erasures that have reached all slots. */
export const removeErased = (db: Queryable, env: number) =>
  db.query(
    'DELETE FROM sink_erasures WHERE env = $1 AND NOT slots && ARRAY(SELECT slot FROM storage_slots WHERE env = $1)',
    [env],
  );

/** Whether erasures wait for one of these slots. */
export const owesErasures = async (
  db: Queryable,
  env: number,
  slots: readonly (SlotName | null)[],
): Promise<boolean> =>
  (await db.query('SELECT 1 FROM sink_erasures WHERE env = $1 AND slots && $2 LIMIT 1', [env, slots]))
    .length > 0;

/** Adds an erasure for all slots, if there are any. */
export const insertErasure = (
  tx: Queryable,
  env: number,
  erasure: { subject: Buffer; replacement: string; messages: Erasure['messages'] },
) =>
  tx.query(
    `INSERT INTO sink_erasures (env, subject, replacement, messages, created_at)
     SELECT $1, $2, $3, $4, now() WHERE EXISTS (SELECT 1 FROM storage_slots WHERE env = $1)`,
    [env, erasure.subject, erasure.replacement, erasure.messages],
  );
