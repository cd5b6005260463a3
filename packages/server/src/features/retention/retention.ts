import { limits } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';

/** Expired rows are deleted in small batches, so that no other query waits for a long delete. */

const batch = 2_000;
const maxBatches = 500;

const expired: { table: string; column?: string; hours: (eventHours: number) => number; own?: true }[] = [
  { table: 'dedup', hours: () => limits.dedupHours },
  { table: 'idempotency', hours: () => limits.idempotencyHours },
  { table: 'events', hours: (eventHours: number) => eventHours, own: true },
  { table: 'audit', hours: () => limits.auditDays * 24 },
  // Cursors of sync refer to a mark, so marks stay a day longer than cursors.
  { table: 'store_marks', column: 'at', hours: () => (limits.syncCursorDays + 1) * 24 },
  { table: 'activity', column: 'at', hours: () => 24 },
  { table: 'socket_sessions', column: 'closed_at', hours: () => limits.requestLogDays * 24 },
  { table: 'push_attempts', column: 'at', hours: () => limits.requestLogDays * 24 },
];

/** Tables with one row per hour (migrations/0025); their rows per day and per month stay. */
const hourly = [
  'counters',
  'active_users',
  'conversation_activity',
  'sender_activity',
  'activity_tops',
] as const;

export async function removeExpired(
  db: Queryable,
  eventRetentionMs: number,
): Promise<Record<string, number>> {
  const removed: Record<string, number> = {};
  for (const { table, column = 'created_at', hours, own } of expired) {
    const before = (hours: string): string => `${column} < now() - ${hours} * interval '1 hour'`;
    // Events stay as long as their environment says. The first condition is for the index.
    const conditions = own
      ? [
          before('least($1, (SELECT min(buffer_hours) FROM environments))'),
          before('coalesce((SELECT buffer_hours FROM environments WHERE no = t.env), $1)'),
        ]
      : [before('$1')];
    removed[table] = 0;
    const cutoff = hours(eventRetentionMs / 3_600_000);
    for (let i = 0; i < maxBatches; i++) {
      const [row] = await db.query<{ n: number }>(
        `WITH gone AS (
           DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM ${table} t WHERE ${conditions.join(' AND ')} LIMIT ${batch}))
           RETURNING 1
         ) SELECT count(*) AS n FROM gone`,
        [cutoff],
      );
      removed[table] += row!.n;
      if (row!.n < batch) break;
    }
  }
  removed['hours'] = 0;
  for (const table of hourly) {
    for (let i = 0; i < maxBatches; i++) {
      const [row] = await db.query<{ n: number }>(
        `WITH gone AS (
           DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
             SELECT x.ctid FROM environments e CROSS JOIN LATERAL (
               SELECT c.ctid FROM ${table} c WHERE c.env = e.no AND c.step = 0
                 AND c.at < date_trunc('day', now(), 'UTC') - interval '${limits.analyticsHoursKeptDays} days' LIMIT ${batch}
             ) x LIMIT ${batch}))
           RETURNING 1
         ) SELECT count(*) AS n FROM gone`,
      );
      removed['hours'] += row!.n;
      if (row!.n < batch) break;
    }
  }
  return removed;
}
