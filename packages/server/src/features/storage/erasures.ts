import { HistoryError } from '../../platform/history/port.ts';
import type { History } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Happened } from '../happenings.ts';
import { erasedContext } from '../webhooks/signature.ts';
import type { SlotName, SlotRow } from './sql.ts';
import * as sql from './sql/erasures.ts';

/** Erases users in customers' databases: in those of all slots, whether in use or not. */

export const eraseInSinks = (vault: Vault, tx: Tx, { env, userId, ...erased }: Happened['userErased']) =>
  sql.insertErasure(tx, env, { ...erased, subject: vault.seal(userId, erasedContext(env)) });

/** Returns why it failed in a slot that is in use (`used`): that is the failure of the turn. */
export async function eraseUsers(
  { db, vault, logger }: { db: Db; vault: Vault; logger: Logger },
  env: number,
  slots: readonly SlotRow[],
  used: readonly (SlotName | null)[],
  open: (slot: SlotRow) => Promise<History>,
): Promise<HistoryError | null> {
  let failure: HistoryError | null = null;
  for (const row of slots) {
    const { slot, changedAt } = row;
    const inUse = used.includes(slot);
    const rows = await sql.dueErasures(db, env, slot, inUse);
    if (rows.length === 0) continue;
    try {
      const history = await open(row);
      for (const { no, subject, replacement, messages } of rows) {
        const userId = vault.open(subject, erasedContext(env)).toString();
        await history.erase({ userId, replacement, messages });
        // A slot that was changed meanwhile may have another database.
        await sql.markErased(db, env, no, slot, changedAt);
      }
      await sql.clearFailures(db, env, slot);
    } catch (error) {
      if (!(error instanceof HistoryError)) throw error;
      if (inUse) {
        failure ??= error;
        continue;
      }
      logger.warn({ env, slot, reason: error.message }, 'users could not be erased in a history database');
      await sql.addFailure(db, env, slot, error.message, changedAt);
    }
  }
  await sql.removeErased(db, env);
  return failure;
}
