import type { Queryable } from '../../platform/postgres/db.ts';
import type { LockedConversation } from './lock.ts';

/** Events of conversations other than messages. */

const appendSql = `
  WITH moved AS (
    UPDATE conversations SET last_seq = last_seq + $5, last_activity_at = greatest(last_activity_at, $6::timestamptz)
    WHERE env = $1 AND no = $2
    RETURNING last_seq, last_activity_step < activity_step(last_activity_at) AS stale, activity_step(last_activity_at) AS step
  ), event AS MATERIALIZED (
    SELECT m.last_seq - $5 + e.ord AS seq, e.* FROM moved m, ROWS FROM (
      json_to_recordset($4::json) AS (type text, webhook text, message bigint, users bigint[], actor bigint, data text, payload text)
    ) WITH ORDINALITY AS e(type, webhook, message, users, actor, data, payload, ord)
  ), kept AS (
    INSERT INTO events (env, conv, seq, type, message, users, actor, data, created_at, active_at)
    SELECT $1, $2, seq, type, message, users, actor, data, $3, nullif($6::timestamptz, $3::timestamptz) FROM event
  ) SELECT last_seq AS seq, stale, step, tell_of_events($1, $2, last_seq - $5 + 1, $3::timestamptz, $4::json) FROM moved`;

/** Appends rows to a locked conversation, and returns its last seq. */
export async function appendEvents(
  tx: Queryable,
  { env, no, lockedAt, activeAt }: LockedConversation,
  rows: readonly object[],
): Promise<number | undefined> {
  const [row] = await tx.query<{ seq: number; stale: boolean; step: number }>(appendSql, [
    env,
    no,
    lockedAt,
    JSON.stringify(rows),
    rows.length,
    activeAt,
  ]);
  if (row?.stale)
    await tx.query('SELECT renew_activity(ARRAY[$1::int], ARRAY[$2::bigint], $3)', [env, no, row.step]);
  return row?.seq;
}

/** Writes a row of the outbox with data that can change, if the consumer listens. */
export async function emitWithPayload(
  tx: Queryable,
  consumer: number,
  { env, conv, type, data }: { env: number; conv: number; type: string; data: object },
): Promise<void> {
  await tx.query(
    `WITH noted AS (
       INSERT INTO outbox (consumer, id, env, type, conv, created_at, due_at)
       SELECT $5::int, make_id('evt_', t), $1, $2, $3, t, t
       FROM environments, (SELECT clock_timestamp() AS t) x WHERE no = $1 AND listeners & $5::int <> 0
       RETURNING id, created_at
     ) INSERT INTO webhook_payloads (event_id, env, conv, data, event_at) SELECT id, $1, $3, $4, created_at FROM noted`,
    [env, type, conv, JSON.stringify(data), consumer],
  );
}

const storedSql = `SELECT u.ord FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS u(env, conv, seq, at, ord)
  CROSS JOIN LATERAL (
    SELECT 1 FROM events WHERE env = u.env AND conv = u.conv AND seq = u.seq AND created_at = u.at LIMIT 1
  ) e ORDER BY u.seq`;

/** Those of the events that are in the store, by their time too. */
export async function storedOf<E extends { env: number; conv: number; seq: number }>(
  db: Queryable,
  events: readonly { event: E; at: string }[],
): Promise<E[]> {
  if (events.length === 0) return [];
  const rows = await db.query<{ ord: number }>(storedSql, [
    events.map(({ event }) => event.env),
    events.map(({ event }) => event.conv),
    events.map(({ event }) => event.seq),
    events.map(({ at }) => at),
  ]);
  return rows.map(({ ord }) => events[ord - 1]!.event);
}
