import { limits } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';

const batch = 2_000;
const maxBatches = 500;
/** Days; a delivery that is still pending then belongs to an environment that was suspended for weeks. */
const mostDays = 30;

/** Removes deliveries that are too old for a replay. */
export async function removeOldDeliveries(db: Queryable): Promise<number> {
  let removed = 0;
  for (let i = 0; i < maxBatches; i++) {
    const [row] = await db.query<{ n: number }>(
      `WITH gone AS (
         DELETE FROM webhook_deliveries WHERE no = ANY(ARRAY(
           SELECT no FROM webhook_deliveries WHERE created_at < now() - interval '${limits.webhookReplayHours} hours'
             AND (status <> 'pending' OR created_at < now() - interval '${mostDays} days'
               OR (SELECT w.no FROM webhook_endpoints w WHERE w.no = endpoint) IS NULL) LIMIT ${batch}))
         RETURNING 1
       ) SELECT count(*) AS n FROM gone`,
    );
    removed += row!.n;
    if (row!.n < batch) break;
  }
  return removed;
}
