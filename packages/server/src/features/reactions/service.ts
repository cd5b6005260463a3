import type { Batcher } from '../../platform/flow/batcher.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Periodic } from '../../platform/flow/periodic.ts';
import type { Timers } from '../../platform/clock.ts';
import type { WorkSignal } from '../../platform/jobs/wake.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import { createLanedBatcher } from '../../log/lanes.ts';
import type { Recorder } from '../../log/record.ts';
import { setReactions } from './sql.ts';
import type { NewReaction, ReactionSet } from './sql.ts';
import { tellReactions } from './tell.ts';

declare module '../context.ts' {
  interface Services {
    reactions: ReactionService;
  }
}

export interface ReactionService {
  /** Commits together with others that arrive meanwhile. */
  set: Batcher<NewReaction, ReactionSet>['add'];
  /** Must be called after a commit that left something to tell. */
  changed(): void;
  /** Resolves when nothing waits for its commit. */
  idle(): Promise<void>;
  /** Tells what is due; for processes with the role worker. */
  telling: Periodic;
}

const subject = 'reactions';
const pollMs = 1_000;

export function createReactionService(options: {
  db: Db;
  log: Recorder;
  timers: Timers;
  logger: Logger;
  work: WorkSignal;
}): ReactionService {
  const { db, log, timers, logger, work } = options;
  const changed = (): void => work.raise(subject);
  const batcher = createLanedBatcher<NewReaction, ReactionSet>({
    maxBatch: 500,
    maxWaiting: 10_000,
    turns: { groupOf: (item) => item.env, maxWaiting: 2_500 },
    timers,
    commit: async (items, waitMs) => {
      const answers = await setReactions(db, items, waitMs);
      if (answers.some((a) => typeof a === 'object' && 'changed' in a && a.changed)) changed();
      return answers;
    },
  });
  const telling = createPeriodic(pollMs, logger, 'telling of reactions', () =>
    tellReactions(db, log, (error) =>
      logger.debug({ err: error }, 'a conversation could not be told of its reactions, and is put off'),
    ),
  );
  work.on(subject, () => telling.wake());
  return { set: batcher.add, changed, idle: () => batcher.idle(), telling };
}
