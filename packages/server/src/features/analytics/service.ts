import type { Plan, PlanName } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import { createLoop } from '../../platform/jobs/loop.ts';
import type { Loop } from '../../platform/jobs/loop.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/periodic.ts';
import type { Periodic } from '../../platform/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { createActiveUsers } from './active.ts';
import type { ActiveUsers } from './active.ts';
import { readFill } from './sql.ts';
import { Tally } from './tally.ts';

/** How often memory is written. */
const flushMs = 5_000;
/** How often notes are folded in, at least and at most; in between, so that folding takes a fiftieth of the time at most. */
const foldMs = { least: 2_000, most: 60_000, share: 50 };
/** How often owners may have to be told of their ceilings. */
const noticeMs = 10_000;
/** Messages folded by one transaction. */
const foldAtOnce = 20_000;
/** Portions that one request waits for; what is left then is counted a moment later. */
const mostPortions = 25;

export interface Analytics {
  readonly tally: Tally;
  readonly active: ActiveUsers;
  /** Counts all that this process knows of and all that was committed before, so that a report shows it. */
  catchUp(): Promise<void>;
}

export interface AnalyticsService extends Analytics {
  /** Writes what is counted in memory: in every process. */
  readonly flushing: { start(): void; stop(): Promise<void> };
  /** Folds notes in: in processes with the role worker. */
  readonly folding: Loop;
  /** Counts what was there before analytics: likewise. */
  readonly filling: Loop;
  /** Tells owners of ceilings that are near: likewise. */
  readonly notices: Periodic;
}

export function createAnalytics(options: {
  db: Queryable;
  clock: Clock;
  logger: Logger;
  plans: Record<PlanName, Plan>;
  tellOwners: () => Promise<void>;
}): AnalyticsService {
  const { db, clock, logger } = options;
  const tally = new Tally();
  const flush = (): Promise<void> => tally.flush(db);

  async function fold(): Promise<number> {
    const [row] = await db.query<{ n: number }>('SELECT count_notes($1) AS n', [foldAtOnce]);
    return row!.n;
  }

  let next: Promise<void> | undefined;
  let running: Promise<void> = Promise.resolve();
  async function run(): Promise<void> {
    next = undefined;
    await flush();
    for (let i = 0; i < mostPortions; i++) if ((await fold()) === 0) return;
  }

  // Those who come while one is under way share the one after it: it began after they asked.
  const catchUp = (): Promise<void> => (next ??= running = running.catch(() => undefined).then(run));

  const periodic = createPeriodic(flushMs, logger, 'counting', flush);
  return {
    tally,
    active: createActiveUsers({ db, clock, plans: options.plans, catchUp }),
    catchUp,
    flushing: {
      start: () => periodic.start(),
      stop: async () => {
        await periodic.stop();
        await flush();
      },
    },
    filling: createLoop(logger, 'counting what was there', foldMs.least, async () => {
      const [row] = await db.query<{ more: boolean }>('SELECT fill_analytics($1) AS more', [foldAtOnce]);
      if (!row!.more) return null;
      const progress = await readFill(db);
      if (progress) logger.info(progress, 'counting what was there before analytics');
      return foldMs.least / 20;
    }),
    notices: createPeriodic(noticeMs, logger, 'telling owners of their ceilings', options.tellOwners),
    folding: createLoop(logger, 'analytics', foldMs.most, async () => {
      const began = clock.monotonic();
      if ((await fold()) === 0) return foldMs.least;
      return Math.min(foldMs.most, Math.max(foldMs.least, (clock.monotonic() - began) * foldMs.share));
    }),
  };
}
