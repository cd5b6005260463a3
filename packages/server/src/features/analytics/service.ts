import type { Plan, PlanName } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { createActiveUsers } from './active.ts';
import { countNotes, fillAnalytics, readFill } from './sql.ts';
import { Tally } from './tally.ts';

/** Milliseconds between writes of what is counted in memory. */
const flushMs = 5_000;
/**
 * Milliseconds between two rounds of counting recorded activity, at least and at most; in between they are chosen so
 * that counting takes at most 1/50 of the time, or 1/5 when more has come than one round counts.
 */
const foldMs = { least: 2_000, most: 60_000, share: 50, shareBehind: 4 };
/** Milliseconds between checks whether owners must be told about their ceilings. */
const noticeMs = 10_000;
/**
 * How many messages one transaction counts. The more at once, the less each costs, because a round writes one row for each
 * conversation and sender, however much they sent.
 */
const foldAtOnce = 250_000;
/** How many portions one request waits for; what is left then is counted a moment later. */
const mostPortions = 2;
/** How many rows one transaction reads when it counts what existed before analytics. */
const fillAtOnce = 20_000;

declare module '../context.ts' {
  interface Services {
    analytics: Analytics;
  }
}

export type Analytics = ReturnType<typeof createAnalytics>;

export function createAnalytics(options: {
  db: Queryable;
  clock: Clock;
  logger: Logger;
  plans: Record<PlanName, Plan>;
  tellOwners: () => Promise<void>;
}) {
  const { db, clock, logger } = options;
  const tally = new Tally();
  const flush = (): Promise<void> => tally.flush(db);

  const fold = (): Promise<number> => countNotes(db, foldAtOnce);

  let next: Promise<void> | undefined;
  let running: Promise<void> = Promise.resolve();
  async function run(): Promise<void> {
    next = undefined;
    await flush();
    for (let i = 0; i < mostPortions; i++) if ((await fold()) === 0) return;
  }

  // Callers that arrive during a run share the next one, which begins after they asked.
  const catchUp = (): Promise<void> => (next ??= running = running.catch(() => undefined).then(run));

  const periodic = createPeriodic(flushMs, logger, 'counting', flush);
  return {
    tally,
    active: createActiveUsers({ db, clock, plans: options.plans, catchUp }),
    /** Counts everything that this process knows of and everything committed before, so that a report shows it. */
    catchUp,
    /** Writes what is counted in memory; runs in every process. The others run in processes with the role worker. */
    flushing: {
      start: () => periodic.start(),
      stop: async () => {
        await periodic.stop();
        await flush();
      },
    },
    /** Counts what existed before analytics did. */
    filling: createPeriodic(foldMs.least, logger, 'counting what was there', async () => {
      if (!(await fillAnalytics(db, fillAtOnce))) return null;
      const progress = await readFill(db);
      if (progress) logger.info(progress, 'counting what was there before analytics');
      return foldMs.least / 20;
    }),
    notices: createPeriodic(noticeMs, logger, 'telling owners of their ceilings', options.tellOwners),
    folding: createPeriodic(foldMs.most, logger, 'analytics', async () => {
      const began = clock.monotonic();
      const folded = await fold();
      const took = clock.monotonic() - began;
      if (folded >= foldAtOnce) return took * foldMs.shareBehind;
      return Math.min(foldMs.most, Math.max(foldMs.least, took * foldMs.share));
    }),
  };
}
