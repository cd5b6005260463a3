import { limits } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstRow } from '../../../platform/postgres/rows.ts';

/** Which endpoints fail, and since when. */

export async function markFailing(tx: Queryable, endpoints: readonly number[]): Promise<void> {
  await tx.query(
    `UPDATE webhook_endpoints SET failing_since = now() WHERE no = ANY($1) AND failing_since IS NULL AND status = 'enabled'`,
    [endpoints],
  );
}

export async function markWell(tx: Queryable, endpoints: readonly number[]): Promise<void> {
  await tx.query(
    'UPDATE webhook_endpoints SET failing_since = NULL WHERE no = ANY($1) AND failing_since IS NOT NULL',
    [endpoints],
  );
}

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
