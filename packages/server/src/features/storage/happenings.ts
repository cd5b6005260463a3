import type { Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Happened } from '../happenings.ts';
import { erasedContext } from '../webhooks/signature.ts';

/** What the sinks of an environment do because of a change in this store. */

/** The latest remaining message may be in the customer's database: the sink fetches it back, for lists. */
export async function wantLatest(tx: Tx, { env, conv, emptied }: Happened['messagesEmptied']): Promise<void> {
  if (emptied.length === 0) return;
  await tx.query(
    `UPDATE sink_conversations s SET want_seq = m.seq FROM conversations c JOIN messages m ON m.env = c.env AND m.conv = c.no
       AND m.seq = c.last_message_seq AND m.id IS NULL
     WHERE s.env = $1 AND s.conv = $2 AND c.env = $1 AND c.no = $2`,
    [env, conv],
  );
}

export const eraseInSinks = (vault: Vault, tx: Tx, erased: Happened['userErased']): Promise<unknown> =>
  tx.query(
    `INSERT INTO sink_erasures (env, subject, replacement, messages, created_at)
     SELECT $1, $2, $3, $4, now() WHERE EXISTS (SELECT 1 FROM storage_slots WHERE env = $1)`,
    [erased.env, vault.seal(erased.userId, erasedContext(erased.env)), erased.replacement, erased.messages],
  );
