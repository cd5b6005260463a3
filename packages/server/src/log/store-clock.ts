import type { Logger } from '../platform/logging.ts';
import { createPeriodic } from '../platform/flow/periodic.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import { isUnavailable } from '../platform/postgres/errors.ts';
import { whenReached } from '../platform/postgres/reach.ts';
import { beatStore } from './sql/store-clock.ts';

const beatMs = 1_000;

/**
 * Keeps the store's clock going, and detects that the store under this process was restored to an earlier state. The
 * store then has another epoch, and what is known about it may not have happened.
 */
export function createStoreClock(options: { db: Queryable; logger: Logger; onRestored: () => void }) {
  const { db, logger } = options;
  let mark: string | null = null;
  let epoch = '';
  const beat = async (): Promise<void> => {
    const before = epoch;
    ({ mark, epoch } = await beatStore(db, mark, epoch));
    if (before === '' || before === epoch) return;
    logger.error('the store was restored to an earlier state, or taken over: all clients load again');
    options.onRestored();
  };
  const periodic = createPeriodic(beatMs, logger, 'the beat of the store’s clock', () =>
    beat().catch((error: unknown) => {
      // Other parts report an unreachable store already.
      if (!isUnavailable(error)) throw error;
    }),
  );
  return {
    /** The epoch of the store, as of the last beat. */
    epoch: (): string => epoch,
    /** Resolves after the first beat, however long the store is away: whatever is written from now on has a later time than anything before. */
    start: async (): Promise<void> => {
      await whenReached(logger, beat);
      periodic.start();
    },
    stop: () => periodic.stop(),
  };
}
