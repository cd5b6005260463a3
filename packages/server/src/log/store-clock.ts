import type { Logger } from '../platform/logging.ts';
import { createPeriodic } from '../platform/periodic.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import { isUnavailable } from '../platform/postgres/errors.ts';

const beatMs = 1_000;

/** Keeps the store's clock going, and detects that the store under this process was restored to an earlier state. */
export function createStoreClock(options: { db: Queryable; logger: Logger; onRestored: () => void }) {
  const { db, logger } = options;
  let mark: string | null = null;
  const beat = async (): Promise<void> => {
    const [row] = await db.query<{ known: boolean; mark: string }>(
      'SELECT o_known AS known, o_mark AS mark FROM store_beat($1)',
      [mark],
    );
    mark = row!.mark;
    if (row!.known) return;
    logger.error('the store was restored to an earlier state: all clients load again');
    options.onRestored();
  };
  const periodic = createPeriodic(beatMs, logger, 'the beat of the store’s clock', () =>
    beat().catch((error: unknown) => {
      // Other parts report an unreachable store already.
      if (!isUnavailable(error)) throw error;
    }),
  );
  return {
    /** Resolves after the first beat: whatever is written from now on has a later time than anything before. */
    start: async (): Promise<void> => {
      await beat();
      periodic.start();
    },
    stop: () => periodic.stop(),
  };
}
