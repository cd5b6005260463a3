import { limits } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { sessionTimes } from '../accounts/sql/sessions.ts';
import {
  batch,
  keepSentIds,
  removeDeliveries,
  removeEvents,
  removeHours,
  removeOlder,
  removePayloads,
} from './sql.ts';

/**
 * Removes expired rows: clientMsgIds by dropping the partition of a whole day (log/sql/sent_ids.sql), all others in batches, so that no
 * transaction takes long. Each batch finds its rows by an index on their age.
 */

/** For each table and sweep: far more than arrive until the next sweep. */
const maxBatches = 20_000;

const expired: { table: string; column?: string; hours: number }[] = [
  // The table of clientMsgIds before migration 0037, and the one for days without a partition.
  { table: 'dedup', hours: limits.dedupHours },
  { table: 'sent_ids_other', hours: limits.dedupHours },
  { table: 'idempotency', hours: limits.idempotencyHours },
  { table: 'audit', hours: limits.auditDays * 24 },
  // Cursors of sync refer to a mark, so marks stay a day longer than cursors.
  { table: 'store_marks', column: 'at', hours: (limits.syncCursorDays + 1) * 24 },
  // What ended by itself is refused before it is removed. Readings keep an entry from being written twice in an hour.
  { table: 'account_sessions', column: 'used_at', hours: sessionTimes.idleMs / 3_600_000 },
  { table: 'invitations', column: 'expires_at', hours: 0 },
  { table: 'passkey_challenges', column: 'expires_at', hours: 0 },
  { table: 'content_reads', column: 'hour', hours: 2 },
  { table: 'activity', column: 'at', hours: 24 },
  { table: 'restrictions', column: 'until', hours: 24 },
  { table: 'reports', column: 'resolved_at', hours: limits.reportDays * 24 },
  { table: 'invite_links', column: 'expires_at', hours: 24 },
  { table: 'socket_sessions', column: 'closed_at', hours: limits.requestLogDays * 24 },
  { table: 'push_attempts', column: 'at', hours: limits.requestLogDays * 24 },
];

/** Tables with one row per hour (migrations/0025); their rows per day and per month stay. */
const hourly = [
  'counters',
  'active_users',
  'conversation_activity',
  'sender_activity',
  'activity_tops',
] as const;

/**
 * Returns the number of removed rows by table; of `sent_ids`, the number of dropped days.
 * @param now the time to count from. A time after the store's own is taken for the store's: the clock of a process may be wrong.
 */
export async function removeExpired(
  db: Queryable,
  eventRetentionMs: number,
  now?: Date,
): Promise<Record<string, number>> {
  const removed: Record<string, number> = {};
  const remove = async (name: string, batchOf: () => Promise<number>): Promise<void> => {
    removed[name] ??= 0;
    for (let i = 0; i < maxBatches; i++) {
      const n = await batchOf();
      removed[name] += n;
      if (n < batch) break;
    }
  };
  removed['sent_ids'] = await keepSentIds(db, now, limits.dedupHours / 24);
  for (const { table, column = 'created_at', hours } of expired)
    await remove(table, () => removeOlder(db, table, column, hours, now));
  // Events stay as long as their environment says.
  await remove('events', () => removeEvents(db, eventRetentionMs / 3_600_000, now));
  await remove('webhook_deliveries', () => removeDeliveries(db));
  await remove('webhook_payloads', () => removePayloads(db));
  for (const table of hourly) await remove('hours', () => removeHours(db, table, now));
  return removed;
}
