import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { WebhookDelivery } from '@parley/protocol';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import type { Api } from '../support/api.ts';

/**
 * Lets time pass for everything that waits for an attempt, and wakes the workers. Attempts under way end first: their
 * lease would pass too, and their next time is not known before. The lanes are locked, because a worker that looks at a
 * lane between the two updates would believe that it is empty.
 */
export async function pass(db: PgDb, interval: string): Promise<void> {
  const passed = () =>
    db.tx(async (tx) => {
      await tx.query('SELECT 1 FROM job_lanes ORDER BY queue, key FOR UPDATE');
      if ((await tx.query('SELECT 1 FROM jobs WHERE leased LIMIT 1')).length > 0) return false;
      await tx.query('UPDATE jobs SET run_at = run_at - $1::interval', [interval]);
      await tx.query(
        `UPDATE job_lanes SET next_at = next_at - $1::interval, first_at = '-infinity', first_leased_at = '-infinity'
         WHERE next_at <> 'infinity'`,
        [interval],
      );
      return true;
    });
  while (!(await passed())) await delay(20);
  await db.query(`SELECT pg_notify('parley_work', '')`);
}

export async function addEndpoint(
  server: Api,
  url: string,
  events: string[],
): Promise<{ id: string; secret: string }> {
  const { status, body } = await server('POST', '/v1/webhooks', { url, events });
  assert.equal(status, 201, JSON.stringify(body));
  return body as { id: string; secret: string };
}

export async function deliveries(server: Api, webhookId: string, limit = 200): Promise<WebhookDelivery[]> {
  const { status, body } = await server('GET', `/v1/webhooks/${webhookId}/deliveries?limit=${limit}`);
  assert.equal(status, 200, JSON.stringify(body));
  return (body as { data: WebhookDelivery[] }).data;
}

/** The newest delivery of an endpoint once it fits. */
export async function delivery(
  server: Api,
  webhookId: string,
  fits: (d: WebhookDelivery) => boolean,
): Promise<WebhookDelivery> {
  for (;;) {
    const found = (await deliveries(server, webhookId)).find(fits);
    if (found) return found;
    await delay(30);
  }
}
