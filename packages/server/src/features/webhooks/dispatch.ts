import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { OutboxRow } from '../../platform/jobs/sql/outbox.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { webhookQueue } from './deliver.ts';
import { createDeliveries } from './sql/deliveries.ts';

/** Creates one delivery, with its job, for every enabled endpoint that subscribed to the event. */
export async function dispatchToWebhooks(tx: Tx, rows: readonly OutboxRow[]): Promise<void> {
  const made = await createDeliveries(
    tx,
    rows.map((r) => r.no),
  );
  await enqueue(
    tx,
    webhookQueue,
    made.map((m) => ({ key: m.endpoint, ref: m.no })),
  );
}
