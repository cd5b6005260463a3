import { createPushService } from '../../src/features/push/service.ts';
import { createOutbox } from '../../src/platform/jobs/outbox.ts';
import { createWorkSignal } from '../../src/platform/jobs/wake.ts';
import type { Logger } from '../../src/platform/logging.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import type { Metrics } from '../../src/platform/metrics.ts';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import { runningPostgres } from '../../src/platform/postgres/embedded/index.ts';
import type { PushEndpoints } from '../../src/platform/push/port.ts';
import type { Vault } from '../../src/platform/secrets.ts';
import type { Vendor } from '../push/vendors/vendor.ts';
import type { Service } from '../support/service.ts';

/** What a worker does for push, in this process, on the store of a running service. */
export interface Pusher {
  metrics: Metrics;
  /** The fields of what was logged as a warning. */
  warnings: Record<string, unknown>[];
  stop(): Promise<void>;
}

export async function startPusher(options: {
  service: Service;
  db: PgDb;
  vault: Vault;
  now: () => number;
  vendors: Vendor[];
  /** Whether everybody has a socket. */
  connected: () => boolean;
}): Promise<Pusher> {
  const connection = (await runningPostgres(options.service.dataDir))!;
  const metrics = createMetrics();
  const warnings: Record<string, unknown>[] = [];
  const nothing = () => undefined;
  const logger = {
    warn: (fields: Record<string, unknown>) => warnings.push(fields),
    debug: nothing,
    info: nothing,
    error: nothing,
  } as unknown as Logger;
  const work = createWorkSignal({ db: options.db, connection, logger });
  const push = createPushService({
    work,
    config: { allowPrivateTargets: true },
    connection,
    names: {
      resolve: () => Promise.reject(new Error('no names here')),
      failed: () => undefined,
      close: nothing,
    },
    onError: nothing,
    vault: options.vault,
    clock: { now: options.now, monotonic: options.now },
    random: Math.random,
    logger,
    metrics,
    presence: { connected: (refs: readonly unknown[]) => Promise.resolve(refs.map(options.connected)) },
    wakeOutbox: nothing,
    endpoints: Object.assign({}, ...options.vendors.map((v) => v.endpoints)) as PushEndpoints,
  } as unknown as Parameters<typeof createPushService>[0]);
  const outbox = createOutbox({ consumers: [push.consumer], work, logger, pollMs: 50 });
  work.start();
  push.start();
  outbox.start();
  return {
    metrics,
    warnings,
    stop: async () => {
      await outbox.stop();
      await push.stop();
      await push.close();
      await work.stop();
    },
  };
}
