import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';

/** Milliseconds between two looks, and how often is looked: a commit of messages ends after 10 s at the latest. */
const lookMs = 10;
const mostLooks = 1_500;

/**
 * Waits until all transactions have ended that have a conversation locked now, in any process. Who appends or edits locks
 * the conversation before it asks whether the sender may: after a change of what it asks was committed, and after this, nothing
 * follows that did not see the change.
 */
export async function awaitWriters(db: Queryable): Promise<void> {
  let earlier: string[] | undefined;
  for (let looks = 0; looks < mostLooks; looks++) {
    const rows = await db.query<{ writer: string }>(
      `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks WHERE locktype = 'relation' AND relation = 'conversations'::regclass
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode IN ('RowShareLock', 'RowExclusiveLock')
         AND granted`,
    );
    const now = new Set(rows.map(({ writer }) => writer));
    earlier = (earlier ?? [...now]).filter((writer) => now.has(writer));
    if (earlier.length === 0) return;
    await delay(lookMs);
  }
  throw new ApiError('service_unavailable');
}
