import { limits } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';

/**
 * Removes expired rows: clientMsgIds by dropping the partition of a whole day (log/sql/sent_ids.sql), all others in batches, so that no
 * transaction takes long. Each batch finds its rows by an index on their age.
 */

const batch = 5_000;
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
  { table: 'activity', column: 'at', hours: 24 },
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
  /** @param rows a query for the places (ctid) of expired rows, to which the limit is added. */
  const remove = async (name: string, table: string, rows: string, values: unknown[]): Promise<void> => {
    removed[name] ??= 0;
    for (let i = 0; i < maxBatches; i++) {
      const [row] = await db.query<{ n: number }>(
        `WITH gone AS (DELETE FROM ${table} WHERE ctid = ANY(ARRAY(${rows} LIMIT ${batch})) RETURNING 1)
         SELECT count(*) AS n FROM gone`,
        values,
      );
      removed[name] += row!.n;
      if (row!.n < batch) break;
    }
  };
  const [days] = await db.query<{ n: number }>(
    'SELECT keep_sent_ids(coalesce($1::timestamptz, now()), $2) AS n',
    [now, limits.dedupHours / 24],
  );
  removed['sent_ids'] = days!.n;
  for (const { table, column = 'created_at', hours } of expired)
    await remove(
      table,
      table,
      `SELECT ctid FROM ${table} WHERE ${column} < least($1::timestamptz, now()) - $2 * interval '1 hour'`,
      [now, hours],
    );
  // Events stay as long as their environment says.
  await remove(
    'events',
    'events',
    `SELECT x.ctid FROM environments e CROSS JOIN LATERAL (
       SELECT t.ctid FROM events t WHERE t.env + 0 = e.no
         AND t.created_at < least($1::timestamptz, now()) - coalesce(e.buffer_hours, $2::float8) * interval '1 hour' LIMIT ${batch}
     ) x`,
    [now, eventRetentionMs / 3_600_000],
  );
  for (const table of hourly)
    await remove(
      'hours',
      table,
      `SELECT x.ctid FROM environments e CROSS JOIN LATERAL (
         SELECT c.ctid FROM ${table} c WHERE c.env = e.no AND c.step = 0
           AND c.at < date_trunc('day', least($1::timestamptz, now()), 'UTC') - interval '${limits.analyticsHoursKeptDays} days' LIMIT ${batch}
       ) x`,
      [now],
    );
  return removed;
}
