import { limits } from '@parley/protocol';
import type { WebhookDelivery, WebhookEndpoint } from '@parley/protocol';
import { consumers } from '../../log/sql/consumers.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { column, firstRow, oneRow, oneValue } from '../../platform/postgres/rows.ts';
import { signingSecrets } from '../sql/signing-secrets.ts';
import { testEvent } from './render.ts';

export interface EndpointRow extends WebhookEndpoint {
  no: number;
}

const endpointColumns = `no, id, url, events, description, status, created_at AS "createdAt",
  disabled_at AS "disabledAt", disabled_reason AS "disabledReason"`;

export const viewEndpoint = ({ no: _, ...view }: EndpointRow): WebhookEndpoint => view;

/** Locks the environment's row, so that endpoints are counted and listeners are set one at a time. */
export const lockEnvironment = (db: Queryable, env: number) =>
  db.query('SELECT 1 FROM environments WHERE no = $1 FOR NO KEY UPDATE', [env]);

/**
 * Updates the `listeners` bits of the environment: whether a webhook is enabled, whether one wants message.read, and
 * whether push needs messages.
 */
export async function setListeners(db: Queryable, env: number): Promise<void> {
  await db.query(
    `UPDATE environments e SET listeners = (e.listeners & ~${consumers.webhooks.bit | consumers.webhookReads.bit}) | x.bits
     FROM (
       SELECT CASE WHEN count(*) > 0 THEN ${consumers.webhooks.bit} ELSE 0 END
         | CASE WHEN coalesce(bool_or('message.read' = ANY(events)), false) THEN ${consumers.webhookReads.bit} ELSE 0 END AS bits
       FROM webhook_endpoints WHERE env = $1 AND status = 'enabled'
     ) x WHERE e.no = $1 AND e.listeners & ${consumers.webhooks.bit | consumers.webhookReads.bit} <> x.bits`,
    [env],
  );
  await db.query('SELECT set_push_listener($1)', [env]);
}

export const countEndpoints = (db: Queryable, env: number): Promise<number> =>
  oneValue(db, 'SELECT count(*) AS n FROM webhook_endpoints WHERE env = $1', [env]);

export const insertEndpoint = (
  db: Queryable,
  env: number,
  row: { id: string; url: string; events: string[]; description: string | null },
): Promise<EndpointRow> =>
  oneRow(
    db,
    `INSERT INTO webhook_endpoints (env, id, url, events, description) VALUES ($1, $2, $3, $4, $5) RETURNING ${endpointColumns}`,
    [env, row.id, row.url, row.events, row.description],
  );

export const listEndpoints = (db: Queryable, env: number, after: string, limit: number) =>
  db.query<EndpointRow>(
    `SELECT ${endpointColumns} FROM webhook_endpoints WHERE env = $1 AND id > $2 ORDER BY id LIMIT $3`,
    [env, after, limit],
  );

export const findEndpoint = (db: Queryable, env: number, id: string): Promise<EndpointRow | undefined> =>
  firstRow(db, `SELECT ${endpointColumns} FROM webhook_endpoints WHERE env = $1 AND id = $2`, [env, id]);

/** Enabling an endpoint clears the reason why it was disabled and the time since when it failed. */
export const updateEndpoint = (db: Queryable, row: EndpointRow): Promise<EndpointRow> =>
  oneRow(
    db,
    `UPDATE webhook_endpoints SET url = $2, events = $3, description = $4, status = $5,
       disabled_at = CASE WHEN $5 = 'enabled' THEN NULL ELSE coalesce(disabled_at, now()) END,
       disabled_reason = CASE WHEN $5 = 'enabled' THEN NULL ELSE coalesce(disabled_reason, 'by request') END,
       failing_since = CASE WHEN $5 = status THEN failing_since END
     WHERE no = $1 RETURNING ${endpointColumns}`,
    [row.no, row.url, row.events, row.description, row.status],
  );

export const deleteEndpoint = (db: Queryable, env: number, id: string) =>
  db.query('DELETE FROM webhook_endpoints WHERE env = $1 AND id = $2', [env, id]);

export const secrets = signingSecrets('webhook_secrets', 'endpoint');

export interface DeliveryRow extends WebhookDelivery {
  no: number;
}

const available = `event_at > now() - interval '${limits.webhookReplayHours} hours'`;
const deliveryColumns = `no, id, event_id AS "eventId", type AS "eventType", status, attempts,
  CASE WHEN status = 'pending' THEN next_at END AS "nextAttemptAt", created_at AS "createdAt", ${available} AS "payloadAvailable"`;

export const viewDelivery = ({ no: _, ...view }: DeliveryRow): WebhookDelivery => view;

/** Deliveries, newest first: their ids begin with their time. */
export const listDeliveries = (db: Queryable, endpoint: number, before: string | null, limit: number) =>
  db.query<DeliveryRow>(
    `SELECT ${deliveryColumns} FROM webhook_deliveries
     WHERE endpoint = $1 AND ($2::text IS NULL OR id < $2) ORDER BY id DESC LIMIT $3`,
    [endpoint, before, limit],
  );

export const findDelivery = (db: Queryable, endpoint: number, id: string): Promise<DeliveryRow | undefined> =>
  firstRow(db, `SELECT ${deliveryColumns} FROM webhook_deliveries WHERE endpoint = $1 AND id = $2`, [
    endpoint,
    id,
  ]);

export const insertDelivery = (
  db: Queryable,
  row: { env: number; endpoint: number; eventId: string; type: string },
): Promise<DeliveryRow> =>
  oneRow(
    db,
    `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, event_at, created_at, next_at)
     SELECT make_id('whd_', t), $1, $2, $3, $4, t, t, t FROM (SELECT clock_timestamp() AS t) x RETURNING ${deliveryColumns}`,
    [row.env, row.endpoint, row.eventId, row.type],
  );

const copied = 'env, endpoint, event_id, type, conv, seq, message, users, actor, data, sealed, event_at';

/** Creates new deliveries of the same events. */
export const copyDeliveries = (db: Queryable, numbers: readonly number[]): Promise<DeliveryRow[]> =>
  db.query(
    `INSERT INTO webhook_deliveries (id, ${copied}, created_at, next_at)
     SELECT make_id('whd_', t), ${copied}, t, t
     FROM webhook_deliveries, (SELECT clock_timestamp() AS t) x WHERE no = ANY($1) ORDER BY no RETURNING ${deliveryColumns}`,
    [numbers],
  );

/** The latest deliveries of events that failed for good since then, oldest first. Delivery ids begin with their time. */
export const failedSince = (db: Queryable, env: number, endpoint: number, since: string, limit: number) =>
  column<number>(
    db,
    `SELECT d.no FROM webhook_deliveries d
     WHERE d.env = $1 AND d.endpoint = $2 AND d.id >= 'whd_' || ulid_time($3::timestamptz - interval '1 minute')
       AND d.created_at >= $3 AND d.status = 'failed' AND d.type <> $5
       AND ${available} AND NOT EXISTS (
         SELECT 1 FROM webhook_deliveries l WHERE l.endpoint = $2 AND l.id > d.id AND l.event_id = d.event_id)
     ORDER BY d.id LIMIT $4`,
    [env, endpoint, since, limit, testEvent],
  );
