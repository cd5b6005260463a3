import { enqueue } from '../../platform/jobs/jobs.ts';
import type { OutboxRow } from '../../platform/jobs/outbox.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { webhookQueue } from './deliver.ts';

/** Creates one delivery, with its job, for every enabled endpoint that subscribed to the event. */
export async function dispatchToWebhooks(tx: Tx, rows: readonly OutboxRow[]): Promise<void> {
  const made = await tx.query<{ no: number; endpoint: number }>(
    `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, conv, seq, message, users, actor, data, sealed,
       event_at, created_at, next_at)
     SELECT make_id('whd_', t.at), o.env, w.no, o.id, o.type, o.conv, o.seq, o.message, o.users, o.actor, o.data, o.sealed,
       o.created_at, t.at, t.at
     FROM outbox o JOIN webhook_endpoints w ON w.env = o.env AND w.status = 'enabled' AND o.type = ANY(w.events),
       (SELECT clock_timestamp() AS at) t
     WHERE o.no = ANY($1) ORDER BY o.no RETURNING no, endpoint`,
    [rows.map((r) => r.no)],
  );
  await enqueue(
    tx,
    webhookQueue,
    made.map((m) => ({ key: m.endpoint, ref: m.no })),
  );
}
