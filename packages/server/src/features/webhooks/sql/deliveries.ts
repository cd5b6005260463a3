import { limits } from '@parley/protocol';
import type { WebhookAttempt } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf, firstRow } from '../../../platform/postgres/rows.ts';
import type { Renderable } from '../render.ts';

/** Deliveries as they are made, attempted and ended, and which endpoints fail, and since when. */

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

export const recordAttempts = (
  tx: Queryable,
  tried: readonly {
    delivery: number;
    status: string | null;
    runAt: Date | null;
    attempt: WebhookAttempt | null;
  }[],
) =>
  tx.query(
    `UPDATE webhook_deliveries d SET status = u.status, next_at = u.next_at,
       attempts = CASE WHEN u.attempt IS NULL THEN d.attempts ELSE d.attempts || u.attempt END
     FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::jsonb[]) u(no, status, next_at, attempt) WHERE d.no = u.no`,
    [
      ...arraysOf(tried, 'delivery', 'status', 'runAt'),
      tried.map((o) => (o.attempt === null ? null : JSON.stringify(o.attempt))),
    ],
  );

export const markFailing = (tx: Queryable, endpoints: readonly number[]) =>
  tx.query(
    `UPDATE webhook_endpoints SET failing_since = now() WHERE no = ANY($1) AND failing_since IS NULL AND status = 'enabled'`,
    [endpoints],
  );

export const markWell = (tx: Queryable, endpoints: readonly number[]) =>
  tx.query(
    'UPDATE webhook_endpoints SET failing_since = NULL WHERE no = ANY($1) AND failing_since IS NOT NULL',
    [endpoints],
  );

/** Endpoints that have failed for so long that they are disabled. */
export const failingEndpoints = (db: Queryable): Promise<{ no: number; env: number }[]> =>
  db.query<{ no: number; env: number }>(
    `SELECT no, env FROM webhook_endpoints
     WHERE failing_since <= now() - interval '${limits.webhookDisableHours} hours' AND status = 'enabled' LIMIT 1000`,
  );

/** Returns undefined if the endpoint is not among these any more: it succeeded, or somebody enabled it anew, meanwhile. */
export const markDisabled = (tx: Queryable, env: number, endpoint: number, reason: string) =>
  firstRow<{ id: string; url: string }>(
    tx,
    `UPDATE webhook_endpoints SET status = 'disabled', disabled_at = now(), disabled_reason = $3
     WHERE no = $1 AND env = $2 AND status = 'enabled' AND failing_since <= now() - $4 * interval '1 hour' RETURNING id, url`,
    [endpoint, env, reason, limits.webhookDisableHours],
  );
