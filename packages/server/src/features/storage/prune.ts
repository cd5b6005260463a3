import { consumers } from '../../log/consumers.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Copy } from './sql.ts';

/** Takes messages that the customer's database has, and that are older than the buffer, out of our store. */

const pruneConversations = 50;
const pruneMessages = 500;
const hourMs = 3_600_000;
/** Hours for which webhooks may still show a message, because attempts go on that long. */
const webhookHours = 96;

export interface PruneOptions {
  db: Db;
  /** The name of this process in leases. */
  node: string;
  retentionMs(env: number): Promise<number>;
}

/**
 * Removes messages from our store that the customer's database has confirmed and that are older than the buffer, by the
 * clock that stamped them: the store's. Returns true if there may be more.
 */
export async function prune(options: PruneOptions, env: number): Promise<boolean> {
  const { db, node } = options;
  const [row] = await db.query<{ webhooks: boolean }>(
    `SELECT listeners & ${consumers.webhooks.bit} <> 0 AS webhooks FROM environments WHERE no = $1`,
    [env],
  );
  const keptMs = Math.max(await options.retentionMs(env), row!.webhooks ? webhookHours * hourMs : 0);
  const convs = await db.query<{ conv: number }>(
    `SELECT conv FROM sink_conversations WHERE env = $1 AND oldest_at < clock_timestamp() - $2 * interval '1 millisecond'
     ORDER BY oldest_at LIMIT $3`,
    [env, keptMs, pruneConversations],
  );
  let cooled = 0;
  let held = 0;
  let allowed = true;
  for (const { conv } of convs)
    await db.tx(async (tx) => {
      const [{ mode = 'managed', copy = null } = {}] = await tx.query<{
        mode?: string;
        copy?: Copy | null;
      }>('SELECT mode, copy FROM storage WHERE env = $1 AND owner = $2 FOR NO KEY UPDATE', [env, node]);
      // What a copy has not reached may be missing in the customer's database without a row in the log.
      if (mode !== 'byo_db' || copy !== null) {
        allowed = false;
        return;
      }
      // Set before the first message leaves, so that a reader that misses it knows where to look.
      await tx.query('UPDATE storage SET has_cold = true WHERE env = $1 AND NOT has_cold', [env]);
      const [done] = await tx.query<{ looked: number | null }>(
        `SELECT cool_messages($1, $2, clock_timestamp() - $3 * interval '1 millisecond', $4) AS looked`,
        [env, conv, keptMs, pruneMessages],
      );
      if (done!.looked === null) held++;
      else cooled += done!.looked;
    });
  const full =
    allowed && held < convs.length && (convs.length === pruneConversations || cooled >= pruneMessages);
  await db.query(
    `UPDATE storage SET pruned_at = CASE WHEN $2 THEN '-infinity' ELSE clock_timestamp() END WHERE env = $1`,
    [env, full],
  );
  return full;
}
