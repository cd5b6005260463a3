import type { Engine, Erasure } from '../../platform/history/port.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { erasedContext } from '../webhooks/signature.ts';
import { thawMessages } from './thaw.ts';

/**
 * What the sink does besides writing: it erases users in customers' databases, and brings back messages that are
 * needed here.
 */

const most = 100;

export async function erasures(
  { db, vault }: { db: Db; vault: Vault },
  env: number,
  histories: readonly Engine[],
): Promise<void> {
  const rows = await db.query<{
    no: number;
    subject: Buffer;
    replacement: string;
    messages: Erasure['messages'];
  }>(
    `SELECT no, subject, replacement, messages FROM sink_erasures WHERE env = $1 ORDER BY no LIMIT ${most}`,
    [env],
  );
  for (const { no, subject, replacement, messages } of rows) {
    const userId = vault.open(subject, erasedContext(env)).toString();
    for (const history of histories) await history.erase({ userId, replacement, messages });
    await db.query('DELETE FROM sink_erasures WHERE no = $1 AND env = $2', [no, env]);
  }
}

/** Brings back messages that are needed here again. */
export async function wanted({ db }: { db: Db }, env: number, histories: readonly Engine[]): Promise<void> {
  const rows = await db.query<{ conv: number; id: string; seq: number }>(
    `SELECT s.conv, c.id, s.want_seq AS seq FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
     WHERE s.env = $1 AND s.want_seq IS NOT NULL LIMIT ${most}`,
    [env],
  );
  for (const { conv, id, seq } of rows)
    for (const history of histories) {
      const { data } = await history.read({
        conversationId: id,
        before: seq + 1,
        after: seq - 1,
        limit: 1,
      });
      await db.tx(async (tx) => {
        await tx.query('SELECT 1 FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE', [
          env,
          conv,
        ]);
        await thawMessages(tx, env, conv, data);
        await tx.query(
          'UPDATE sink_conversations SET want_seq = NULL WHERE env = $1 AND conv = $2 AND want_seq = $3',
          [env, conv, seq],
        );
      });
      if (data.length > 0) break;
    }
}
