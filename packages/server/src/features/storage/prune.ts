import type { Clock } from '../../platform/clock.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Copy } from './sql.ts';

const pruneConversations = 50;
const pruneMessages = 500;
const hourMs = 3_600_000;
/** Hours for which webhooks may still show a message, because attempts go on that long. */
const webhookHours = 96;

export interface PruneOptions {
  db: Db;
  clock: Clock;
  /** The name of this process in leases. */
  node: string;
  retentionMs(env: number): Promise<number>;
}

/**
 * Removes messages from our store that the customer's database has confirmed and that are older than the buffer.
 * Returns true if there may be more.
 */
export async function prune(options: PruneOptions, env: number): Promise<boolean> {
  const { db, clock, node } = options;
  const [row] = await db.query<{ webhooks: boolean; oldest: string | null }>(
    `SELECT e.listeners & 1 <> 0 AS webhooks, (SELECT at FROM sink_log WHERE env = $1 ORDER BY no LIMIT 1) AS oldest
     FROM environments e WHERE e.no = $1`,
    [env],
  );
  const keptMs = Math.max(await options.retentionMs(env), row!.webhooks ? webhookHours * hourMs : 0);
  const cutoff = new Date(clock.now() - keptMs).toISOString();
  // Every change from before this time is in the customer's database.
  const before = row!.oldest !== null && row!.oldest < cutoff ? row!.oldest : cutoff;
  const convs = await db.query<{ conv: number }>(
    'SELECT conv FROM sink_conversations WHERE env = $1 AND oldest_at < $2 ORDER BY oldest_at LIMIT $3',
    [env, before, pruneConversations],
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
      if (mode !== 'byo_db' || (copy !== null && copy.kind !== 'rewrite')) {
        allowed = false;
        return;
      }
      // Set before the first message leaves, so that a reader that misses it knows where to look.
      await tx.query('UPDATE storage SET has_cold = true WHERE env = $1 AND NOT has_cold', [env]);
      const [done] = await tx.query<{ looked: number | null }>(
        'SELECT cool_messages($1, $2, $3, $4) AS looked',
        [env, conv, before, pruneMessages],
      );
      if (done!.looked === null) held++;
      else cooled += done!.looked;
    });
  const full =
    allowed && held < convs.length && (convs.length === pruneConversations || cooled >= pruneMessages);
  await db.query('UPDATE storage SET pruned_at = $2 WHERE env = $1', [
    env,
    new Date(full ? 0 : clock.now()).toISOString(),
  ]);
  return full;
}
