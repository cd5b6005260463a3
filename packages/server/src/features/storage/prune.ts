import type { Db } from '../../platform/postgres/db.ts';
import { payloadHours } from '../webhooks/schedule.ts';
import { countEndpoints } from '../webhooks/sql.ts';
import type { RetentionMs } from './retention.ts';
import { coolMessages, lockOwned, markPruned, oldConversations } from './sql/sink.ts';

const pruneConversations = 50;
const pruneMessages = 500;
const hourMs = 3_600_000;

export interface PruneOptions {
  db: Db;
  node: string;
  retentionMs: RetentionMs;
}

/**
 * Removes messages from our store that the customer's database has confirmed and that are older than the buffer, by the
 * clock that stamped them: the store's. Returns true if there may be more.
 */
export async function prune(options: PruneOptions, env: number): Promise<boolean> {
  const { db, node } = options;
  // What a disabled endpoint missed can be replayed when it is enabled again.
  const webhooks = (await countEndpoints(db, env)) > 0;
  const keptMs = Math.max(await options.retentionMs(env), webhooks ? payloadHours * hourMs : 0);
  const convs = await oldConversations(db, env, keptMs, pruneConversations);
  let cooled = 0;
  let locked = 0;
  let allowed = true;
  for (const conv of convs)
    await db.tx(async (tx) => {
      const held = await lockOwned(tx, env, node);
      // What a copy has not reached may be missing in the customer's database without a row in the log.
      if (held?.mode !== 'byo_db' || held.copy !== null) {
        allowed = false;
        return;
      }
      // Set before the first message leaves, so that a reader that misses it knows where to look.
      const looked = await coolMessages(tx, env, conv, keptMs, pruneMessages);
      if (looked === null) locked++;
      else cooled += looked;
    });
  const full =
    allowed && locked < convs.length && (convs.length === pruneConversations || cooled >= pruneMessages);
  await markPruned(db, env, full);
  return full;
}
