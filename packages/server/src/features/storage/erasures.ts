import { HistoryError } from '../../platform/history/port.ts';
import type { Erasure, History } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { erasedContext } from '../webhooks/signature.ts';
import type { SlotName } from './sql.ts';

/** Erases users in customers' databases: in those of all slots, whether in use or not. */

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

/** A slot that erasures must reach; the failure of one that is in use is the failure of the turn. */
export interface ErasureSlot {
  slot: SlotName;
  changedAt: string;
  inUse: boolean;
  open(): Promise<History>;
}

/** Returns why it failed in a slot that is in use. */
export async function eraseUsers(
  { db, vault, logger }: { db: Db; vault: Vault; logger: Logger },
  env: number,
  slots: readonly ErasureSlot[],
): Promise<HistoryError | null> {
  let failure: HistoryError | null = null;
  for (const { slot, changedAt, inUse, open } of slots) {
    const rows = await db.query<{
      no: number;
      subject: Buffer;
      replacement: string;
      messages: Erasure['messages'];
    }>(
      `SELECT e.no, e.subject, e.replacement, e.messages FROM sink_erasures e JOIN storage_slots x ON x.env = e.env AND x.slot = $2
       WHERE e.env = $1 AND $2 = ANY (e.slots) AND ($3 OR ${come('x.erase_due_at')}) ORDER BY e.no LIMIT ${most}`,
      [env, slot, inUse],
    );
    if (rows.length === 0) continue;
    try {
      const history = await open();
      for (const { no, subject, replacement, messages } of rows) {
        const userId = vault.open(subject, erasedContext(env)).toString();
        await history.erase({ userId, replacement, messages });
        // A slot that was changed meanwhile may have another database.
        await db.query(
          `UPDATE sink_erasures SET slots = array_remove(slots, $3) WHERE env = $1 AND no = $2
             AND EXISTS (SELECT 1 FROM storage_slots x WHERE x.env = $1 AND x.slot = $3 AND x.changed_at = $4)`,
          [env, no, slot, changedAt],
        );
      }
      await db.query(
        'UPDATE storage_slots SET erase_failures = 0, erase_error = NULL WHERE env = $1 AND slot = $2 AND erase_failures > 0',
        [env, slot],
      );
    } catch (error) {
      if (!(error instanceof HistoryError)) throw error;
      if (inUse) {
        failure ??= error;
        continue;
      }
      logger.warn({ env, slot, reason: error.message }, 'users could not be erased in a history database');
      await db.query(
        `UPDATE storage_slots SET erase_failures = erase_failures + 1, erase_error = $3, erase_due_at = clock_timestamp() +
           least(${longestPauseMs}, ${firstPauseMs} * 2 ^ least(erase_failures, 20)) * interval '1 millisecond'
         WHERE env = $1 AND slot = $2 AND changed_at = $4`,
        [env, slot, error.message, changedAt],
      );
    }
  }
  await db.query(
    'DELETE FROM sink_erasures WHERE env = $1 AND NOT slots && ARRAY(SELECT slot FROM storage_slots WHERE env = $1)',
    [env],
  );
  return failure;
}

/** Whether erasures wait for one of these slots. */
export const owesErasures = async (
  db: Db,
  env: number,
  slots: readonly (SlotName | null)[],
): Promise<boolean> =>
  (await db.query('SELECT 1 FROM sink_erasures WHERE env = $1 AND slots && $2 LIMIT 1', [env, slots]))
    .length > 0;
