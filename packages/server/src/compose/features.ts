import { createAccounts } from '../features/accounts/create.ts';
import { createAnalytics } from '../features/analytics/service.ts';
import { createCallService } from '../features/calls/service.ts';
import type { Services } from '../features/context.ts';
import { resumeErasures } from '../features/erasure/operations.ts';
import { createHookService } from '../features/hooks/service.ts';
import { createLostSweep } from '../features/live/history.ts';
import { tellOwners } from '../features/plans/notices.ts';
import { createPlanTable } from '../features/plans/table.ts';
import { createPushService } from '../features/push/service.ts';
import { createReactionService } from '../features/reactions/service.ts';
import { createReportService } from '../features/reports/service.ts';
import { removeEnded } from '../features/retention/ended.ts';
import { removeExpired } from '../features/retention/retention.ts';
import { createStorageService } from '../features/storage/service.ts';
import { createSyncer } from '../features/sync/operations.ts';
import { createKeyUsage } from '../features/tenancy/key-usage.ts';
import { createMediaService } from '../features/uploads/media.ts';
import { createWebhookService } from '../features/webhooks/service.ts';
import { createWordService } from '../features/words/service.ts';
import { createOutbox } from '../platform/jobs/outbox.ts';
import { createPeriodic } from '../platform/flow/periodic.ts';
import { createHappenings } from './happenings.ts';
import type { Log } from './log.ts';
import type { Platform, ServiceOptions } from './platform.ts';
import type { Realtime } from './realtime.ts';

const sweepMs = 10 * 60_000;
const endedMs = 60_000;

/** The services that operations use, and what the features do in the background. */
export function createFeatures(
  options: ServiceOptions,
  platform: Platform,
  { log, recorder }: Log,
  { retentionMs, sharing, signals, sockets, tracing }: Realtime,
) {
  const { config, db, clock, ids, vault, logger, registry } = platform;
  const planTable = createPlanTable(config.plans, logger, options.plans);
  const { plans } = planTable;
  const accounts = createAccounts(platform);
  const { mailQueue } = accounts.services;
  const push = createPushService({ ...platform, presence: registry });
  sockets.onLost((socket) => push.lost(socket));
  const webhooks = createWebhookService({ ...platform, recorder, mailQueue });
  const hooks = createHookService({ ...platform, log, recorder });
  const storage = createStorageService({ ...platform, log, retentionMs, mailQueue });
  const reactions = createReactionService({ ...platform, log });
  const media = createMediaService(platform);
  const calls = createCallService({ ...platform, presence: registry });
  const analytics = createAnalytics({
    ...platform,
    plans,
    tellOwners: async () => void (await tellOwners(db, plans, mailQueue, logger)),
  });
  const reports = createReportService({ ...platform, log, analytics });
  const outbox = createOutbox({
    ...platform,
    consumers: [webhooks.consumer, push.consumer, reports.consumer],
  });
  const services: Services = {
    clock,
    ids,
    vault,
    log,
    media,
    webhooks,
    push,
    syncer: createSyncer(db),
    signals,
    sockets,
    traces: tracing,
    calls: calls.services,
    accounts: accounts.services,
    analytics,
    reactions,
    words: createWordService(db),
    hooks,
    sharing,
    linkOrigin: accounts.services.linkOrigin,
    plans,
    storage,
    happenings: createHappenings({
      clock,
      log,
      vault,
      sockets,
      signals,
      calls: calls.services,
      media,
      reactions,
    }),
  };
  return {
    services,
    planTable,
    accounts,
    push,
    webhooks,
    hooks,
    outbox,
    storage,
    media,
    calls,
    reactions,
    reports,
    analytics,
    keyUsage: createKeyUsage(platform),
    lostSweep: createLostSweep(db, logger),
    sweeper: createPeriodic(sweepMs, logger, 'sweep', async () => {
      const removed = await removeExpired(db, config.eventRetentionMs);
      const erasures = await resumeErasures({ db, services });
      logger.debug({ removed, erasures }, 'sweep');
    }),
    ender: createPeriodic(endedMs, logger, 'removal of ended environments', async () => {
      const environments = await removeEnded(db);
      if (environments > 0) logger.info({ environments }, 'removed the data of ended environments');
    }),
  };
}

export type Features = ReturnType<typeof createFeatures>;
