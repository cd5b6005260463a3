import { limits } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { oneValue } from '../../../platform/postgres/rows.ts';
import { payloadHours } from '../schedule.ts';
import { longestDays } from './payloads.ts';

const batch = 2_000;
const maxBatches = 500;

/** @param expired the keys of rows that are too old, to which the limit is added. */
async function removeBatches(db: Queryable, table: string, key: string, expired: string): Promise<number> {
  let removed = 0;
  for (let i = 0; i < maxBatches; i++) {
    const gone = await oneValue<number>(
      db,
      `WITH gone AS (DELETE FROM ${table} WHERE ${key} = ANY(ARRAY(${expired} LIMIT ${batch})) RETURNING 1)
       SELECT count(*) AS n FROM gone`,
    );
    removed += gone;
    if (gone < batch) break;
  }
  return removed;
}

/** Days; a delivery that is still pending then belongs to an environment that was suspended for weeks. */
const mostDays = 30;

/** Removes deliveries that are too old for a replay. */
export const removeOldDeliveries = (db: Queryable): Promise<number> =>
  removeBatches(
    db,
    'webhook_deliveries',
    'no',
    `SELECT no FROM webhook_deliveries WHERE created_at < now() - interval '${limits.webhookReplayHours} hours'
       AND (status <> 'pending' OR created_at < now() - interval '${mostDays} days'
         OR (SELECT w.no FROM webhook_endpoints w WHERE w.no = endpoint) IS NULL)`,
  );

/** If the environment is suspended meanwhile, payloads stay up to `longestDays`. */
export const removeOldPayloads = (db: Queryable): Promise<number> =>
  removeBatches(
    db,
    'webhook_payloads',
    'event_id',
    `SELECT event_id FROM webhook_payloads p WHERE event_at < now() - interval '${payloadHours} hours'
       AND (event_at < now() - interval '${longestDays} days'
         OR NOT EXISTS (SELECT 1 FROM environments e WHERE e.no = p.env AND e.status = 'suspended'))`,
  );
