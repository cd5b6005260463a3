import type { Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Happened } from '../happenings.ts';
import { erasedContext } from '../webhooks/signature.ts';
import { insertErasure } from './sql/erasures.ts';
import { wantLatestMessage } from './sql/thaw.ts';

/** What the sinks of an environment do because of a change in this store. */

/** The latest remaining message may be in the customer's database: the sink fetches it back, for lists. */
export async function wantLatest(tx: Tx, { env, conv, emptied }: Happened['messagesEmptied']): Promise<void> {
  if (emptied.length === 0) return;
  await wantLatestMessage(tx, env, conv);
}

export const eraseInSinks = (vault: Vault, tx: Tx, erased: Happened['userErased']): Promise<unknown> =>
  insertErasure(tx, erased.env, {
    subject: vault.seal(erased.userId, erasedContext(erased.env)),
    replacement: erased.replacement,
    messages: erased.messages,
  });
