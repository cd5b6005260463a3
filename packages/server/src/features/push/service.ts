import { randomBytes } from 'node:crypto';
import { depth } from '../../platform/jobs/sql/jobs.ts';
import { consumers } from '../../log/sql/consumers.ts';
import type { Consumer } from '../../platform/jobs/outbox.ts';
import { createWorker } from '../../platform/jobs/worker.ts';
import type { WorkerOptions } from '../../platform/jobs/worker.ts';
import { createOutbound } from '../../platform/outbound/outbound.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import type { LostSocket } from '../../platform/presence/port.ts';
import type { PushEndpoints, PushNotification, PushOutcome } from '../../platform/push/port.ts';
import { workPool } from '../platform.ts';
import type { Platform } from '../platform.ts';
import { sendQueue } from './notify.ts';
import { dispatchToPush, plan, planQueue, recordPlan } from './plan.ts';
import type { Planned, Presence } from './plan.ts';
import { createProviders } from './providers.ts';
import { receiptQueue, recordSends, startReceipts, startSends } from './send.ts';
import type { ReceiptOutcome, SendOutcome } from './send.ts';
import * as sql from './sql.ts';
import { createLostSockets, lookBack, lostQueue } from './lost.ts';
import type { Looked } from './lost.ts';

declare module '../context.ts' {
  interface Services {
    push: ReturnType<typeof createPushService>;
  }
}

const workConnections = 3;
/** Milliseconds that a lane stands still after the process that fills it was killed. */
const leaseMs = 8_000;
const sweepMs = 60_000;
const depthMs = 10_000;

const testNotification: PushNotification = {
  title: 'Test',
  body: 'A test notification.',
  badge: 0,
  collapseKey: 'test',
  data: { type: 'push.test' },
  priority: 'high',
  ttlSeconds: 60,
};

export function createPushService(
  options: Platform & {
    presence: Presence;
    /** The vendors' addresses, replaced in tests. */
    endpoints?: PushEndpoints;
  },
) {
  const { logger, clock, metrics, presence } = options;
  const db = workPool(options, workConnections);
  const outbound = createOutbound({
    allowPrivate: options.config.allowPrivateTargets,
    resolve: options.names.resolve,
  });
  const now = (): number => clock.now();
  const providers = createProviders({
    db,
    vault: options.vault,
    logger,
    dependencies: (env) => ({
      request: (request) => outbound.request({ ...request, tenant: env }),
      now,
      randomBytes,
    }),
    endpoints: options.endpoints,
  });
  const results = metrics.counter('parley_push_total', 'Pushes, by provider and result', [
    'provider',
    'result',
  ]);
  let jobs = 0;
  metrics.gauge('parley_queue_push_jobs', 'Jobs of the queues of push', () => jobs);

  /** The planned pushes are sent, and events recorded, with the end of the jobs that planned them. */
  async function record(tx: Tx, planned: readonly Planned[]): Promise<void> {
    await recordPlan({ committed: options.wakeOutbox }, tx, planned);
    tx.afterCommit(() => sender.wake());
  }
  type Queue<O extends { runAt: Date | null }> = Omit<WorkerOptions<O>, 'db' | 'logger' | 'leaseMs'>;
  const worker = <O extends { runAt: Date | null }>(queue: Queue<O>) =>
    createWorker({ db, logger, leaseMs, ...queue });
  const planner = worker<Planned>({
    queue: planQueue.name,
    slots: 50,
    run: async (batch) => (await plan(db, presence, batch, now())).map((planned) => Promise.resolve(planned)),
    record,
  });
  const sending = {
    db,
    providers,
    presence,
    now,
    monotonic: () => clock.monotonic(),
    random: options.random,
    onResult: (provider: string, result: string) => results.inc({ provider, result }),
  };
  const sender = worker<SendOutcome>({
    queue: sendQueue.name,
    slots: 1_000,
    run: (batch, signal) => startSends(sending, batch, signal),
    record: (tx, outcomes) => recordSends(tx, outcomes, now()),
  });
  options.work.on(sendQueue.name, () => sender.wake());
  const receipts = worker<ReceiptOutcome>({
    queue: receiptQueue.name,
    slots: receiptQueue.width,
    run: (batch) => Promise.resolve(startReceipts(sending, batch)),
    record: (tx, outcomes) =>
      sql.dropDead(
        tx,
        outcomes.flatMap((o) => o.dead),
      ),
  });
  const looker = worker<Looked>({
    queue: lostQueue.name,
    slots: 50,
    run: async (batch) =>
      (await lookBack(db, presence, batch, now())).map((looked) => Promise.resolve(looked)),
    record: (tx, looked) =>
      record(
        tx,
        looked.flatMap((l) => l.planned),
      ),
  });
  options.work.on(lostQueue.name, () => looker.wake());
  const lostSockets = createLostSockets(db, () => options.work.raise(lostQueue.name));
  const sweeper = createPeriodic(
    sweepMs,
    logger,
    'push sweep',
    async () => void (await sql.correctListeners(db)),
  );
  const gauges = createPeriodic(depthMs, logger, 'push queue depth', async () => {
    jobs = (await depth(db, planQueue.name)) + (await depth(db, sendQueue.name));
  });
  const parts = [planner, looker, sender, receipts, sweeper, gauges];

  const consumer: Consumer = {
    name: 'push',
    bit: consumers.push.bit,
    db,
    take: dispatchToPush,
    taken: () => planner.wake(),
  };

  return {
    consumer,
    /** Sends a test notification to each device now, and returns what the providers answered. */
    test: async (env: number, devices: readonly sql.DeviceRow[]): Promise<PushOutcome[]> => {
      const made = await providers.load(devices.map(({ provider }) => ({ env, provider })));
      const outcomes = await Promise.all(
        devices.map(
          ({ token }, i): Promise<PushOutcome> =>
            made[i]?.send(token, testNotification) ??
            Promise.resolve({ kind: 'rejected', reason: 'no credentials for this provider' }),
        ),
      );
      const dead = devices.filter((_, i) => outcomes[i]!.kind === 'dead');
      await sql.dropDead(
        db,
        dead.map(({ no, registeredAt }) => ({ env, no, registeredAt })),
      );
      return outcomes;
    },
    /** A socket was found dead: pushes what it did not confirm. Never rejects. */
    lost: (socket: LostSocket): Promise<void> =>
      lostSockets
        .add(socket)
        .catch((error: unknown) =>
          logger.warn({ err: error }, 'what a lost socket did not confirm is not pushed'),
        ),
    /** Starts pushing, in processes with the role worker, once the database is ready. */
    start: () => {
      for (const part of parts) part.start();
    },
    stop: async () => {
      await Promise.all(parts.map((part) => part.stop()));
    },
    close: async () => {
      providers.close();
      outbound.close();
      await db.close();
    },
  };
}
