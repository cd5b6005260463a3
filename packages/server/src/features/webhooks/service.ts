import { Histogram } from 'prom-client';
import { depth, enqueue, removeEmptyLanes } from '../../platform/jobs/sql/jobs.ts';
import { consumers } from '../../log/sql/consumers.ts';
import type { Consumer } from '../../platform/jobs/outbox.ts';
import { createWorker } from '../../platform/jobs/worker.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createOutbound } from '../../platform/outbound/outbound.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import { workPool } from '../platform.ts';
import type { Platform } from '../platform.ts';
import { mailQueue } from '../accounts/mail-queue.ts';
import type { MailQueue } from '../accounts/mail-queue.ts';
import type { Recorder } from '../logs/recorder.ts';
import { createDeliverer, webhookQueue } from './deliver.ts';
import type { Outcome } from './deliver.ts';
import { disableFailing } from './disable.ts';
import { createDeliveries } from './sql/deliveries.ts';

declare module '../context.ts' {
  interface Services {
    webhooks: ReturnType<typeof createWebhookService>;
  }
}

/** How many deliveries one process attempts at once. */
const slots = 1_000;
/** An attempt takes 10 s at most; the rest is for writing its result. */
const leaseMs = 20_000;
const sweepMs = 60_000;
const workConnections = 4;
const depthMs = 10_000;

export function createWebhookService(
  options: Platform & { recorder: Pick<Recorder, 'add'>; mailQueue: MailQueue },
) {
  const { config, db, logger, metrics } = options;
  const workDb = workPool(options, workConnections);
  const outbound = createOutbound({
    allowPrivate: config.allowPrivateTargets,
    maxSocketsPerHost: slots,
    resolve: options.names.resolve,
    failed: options.names.failed,
  });
  const measure = measures(metrics);
  const deliverer = createDeliverer({
    ...options,
    db: workDb,
    outbound,
    onAttempt: measure.attempt,
  });

  const worker = createWorker<Outcome>({
    db: workDb,
    logger,
    queue: webhookQueue.name,
    slots,
    leaseMs,
    run: (jobs, signal) =>
      deliverer.start(
        jobs.map((j) => j.ref!),
        signal,
      ),
    record: deliverer.record,
  });
  options.work.on(webhookQueue.name, () => worker.wake());
  const sweeper = createPeriodic(sweepMs, logger, 'webhook sweep', async () => {
    await disableFailing(workDb, options.mailQueue, logger);
    await removeEmptyLanes(workDb);
  });
  const gauges = createPeriodic(depthMs, logger, 'queue depth', async () => {
    for (const [name, queue] of queues) measure.depth.set(name, await depth(workDb, queue.name));
  });

  const consumer: Consumer = {
    name: 'webhooks',
    bit: consumers.webhooks.bit,
    db: workDb,
    /** Creates a delivery, with its job, for every enabled endpoint that subscribed to the event. */
    take: async (tx, rows) => {
      const made = await createDeliveries(
        tx,
        rows.map(({ no }) => no),
      );
      await enqueue(
        tx,
        webhookQueue,
        made.map(({ endpoint, no }) => ({ key: endpoint, ref: no })),
      );
    },
    taken: () => worker.wake(),
  };

  return {
    outbound,
    consumer,
    /** Must be called after a delivery was queued. */
    queued: () => options.work.raise(webhookQueue.name),
    /** Attempts one delivery now, in this process. */
    deliver: async (no: number): Promise<void> => {
      const outcomes = await Promise.all(await deliverer.start([no]));
      await db.tx((tx) => deliverer.record(tx, outcomes));
    },
    /** Starts delivering, in processes with the role worker, once the database is ready. */
    start: () => {
      for (const part of [worker, sweeper, gauges]) part.start();
    },
    stop: async () => {
      await Promise.all([worker, sweeper, gauges].map((part) => part.stop()));
    },
    /** Closes the service's connections, which operations use too. */
    close: async () => {
      outbound.close();
      await workDb.close();
    },
  };
}

/** The queues that /metrics shows, by their names there. */
const queues = [
  ['webhook', webhookQueue],
  ['mail', mailQueue],
] as const;

function measures(metrics: Metrics) {
  const attempts = metrics.counter('parley_webhook_attempts_total', 'Webhook attempts, by result', [
    'result',
  ]);
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers: [metrics.registry] });
  const seconds = histogram(
    'parley_webhook_attempt_seconds',
    'Time of one attempt',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  );
  const lag = histogram(
    'parley_webhook_lag_seconds',
    'From the commit to the delivery',
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 60, 600, 3_600, 86_400],
  );
  const depths = new Map<string, number>();
  for (const [name] of queues)
    metrics.gauge(`parley_queue_${name}_jobs`, `Jobs of the queue ${name}`, () => depths.get(name) ?? 0);
  return {
    depth: depths,
    attempt: (result: 'succeeded' | 'failed', durationMs: number, lagMs: number): void => {
      attempts.inc({ result });
      seconds.observe(durationMs / 1000);
      if (result === 'succeeded') lag.observe(lagMs / 1000);
    },
  };
}
