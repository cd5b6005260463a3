import type { WebhookAttempt } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import type { Renderable } from '../render.ts';

/** Deliveries as they are made, attempted and ended. */

/** Creates a delivery of each of these rows of the outbox for every enabled endpoint that subscribed to it. */
export const createDeliveries = (tx: Queryable, rows: readonly number[]) =>
  tx.query<{ no: number; endpoint: number }>(
    `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, conv, seq, message, users, actor, data, sealed,
       event_at, created_at, next_at)
     SELECT make_id('whd_', t.at), o.env, w.no, o.id, o.type, o.conv, o.seq, o.message, o.users, o.actor, o.data, o.sealed,
       o.created_at, t.at, t.at
     FROM outbox o JOIN webhook_endpoints w ON w.env = o.env AND w.status = 'enabled' AND o.type = ANY(w.events),
       (SELECT clock_timestamp() AS at) t
     WHERE o.no = ANY($1) ORDER BY o.no RETURNING no, endpoint`,
    [rows],
  );

export interface DueDelivery extends Renderable {
  /** The id of the delivery. */
  id: string;
  endpoint: number;
  url: string;
  endpointStatus: 'enabled' | 'disabled';
  envStatus: 'active' | 'suspended';
  attempts: number;
}

export async function loadDue(db: Queryable, numbers: readonly number[]): Promise<Map<number, DueDelivery>> {
  const rows = await db.query<DueDelivery>(
    `SELECT d.no, d.id, d.env, e.id AS "envId", e.status AS "envStatus", d.endpoint, w.id AS "endpointId", w.url,
       w.status AS "endpointStatus", d.event_id AS "eventId", d.type, d.conv, d.seq, d.message, d.users, d.actor, d.data,
       d.sealed, d.event_at AS "eventAt", jsonb_array_length(d.attempts) AS attempts
     FROM webhook_deliveries d JOIN webhook_endpoints w ON w.no = d.endpoint JOIN environments e ON e.no = d.env
     WHERE d.no = ANY($1)`,
    [numbers],
  );
  return new Map(rows.map((r) => [r.no, { ...r, users: r.users?.map(Number) ?? null }]));
}

export async function recordAttempts(
  tx: Queryable,
  tried: readonly {
    delivery: number;
    status: string | null;
    runAt: Date | null;
    attempt: WebhookAttempt | null;
  }[],
): Promise<void> {
  await tx.query(
    `UPDATE webhook_deliveries d SET status = u.status, next_at = u.next_at,
       attempts = CASE WHEN u.attempt IS NULL THEN d.attempts ELSE d.attempts || u.attempt END
     FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::jsonb[]) u(no, status, next_at, attempt) WHERE d.no = u.no`,
    [
      ...arraysOf(tried, 'delivery', 'status', 'runAt'),
      tried.map((o) => (o.attempt === null ? null : JSON.stringify(o.attempt))),
    ],
  );
}
