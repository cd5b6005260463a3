import { systemTimers } from '../platform/clock.ts';
import type { Timers } from '../platform/clock.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import { isUnanswered } from '../platform/postgres/errors.ts';
import { appendBatch } from './sql/append.ts';
import type { Appended, NewMessage } from './sql/append.ts';
import type { Unconfirmed } from './unconfirmed-commits.ts';
import type { LogEvent } from './events.ts';
import { createLanedBatcher } from './lanes.ts';
import { readBatch } from './unread/sql/mark-read.ts';
import type { ReadMark, ReadMarked } from './unread/sql/mark-read.ts';

/**
 * The conversation log: the only place that assigns a `seq`.
 *
 * Messages go through a group commit (sql/append.ts): all that arrive while a transaction runs are committed together by
 * the next one, so the longer PostgreSQL takes, the more messages share a commit. It does not wait for a conversation
 * that another transaction has locked (lanes.ts). Everything else that happens in a conversation is rare, and is
 * appended in the transaction of its own operation (record.ts). Both lock the conversation's row meanwhile, so seqs
 * have no gaps, whichever process appends.
 * Events leave after the commit, through `publish` and nowhere else.
 */

/** How many items may wait for the next batch: in all, and of one environment, which cannot use up the room of others. */
const limits = { maxBatch: 1_000, maxWaiting: 20_000 };
const turns = { groupOf: (item: { env: number }) => item.env, maxWaiting: 5_000 };

export type ConversationLog = ReturnType<typeof createConversationLog>;

export function createConversationLog(options: {
  /** A separate pool with `logConnections` connections, so that appends never wait for the other pool. */
  db: Queryable;
  publish: (event: LogEvent) => void;
  onBatch?: (size: number, ms: number) => void;
  /** Called after a commit that may have left rows in the outbox. */
  onCommit?: () => void;
  /** Called with messages of which it is unknown whether they were committed. */
  onUnconfirmed?: (commits: readonly Unconfirmed[]) => void;
  timers?: Timers;
}) {
  const { db, publish, onBatch, timers = systemTimers } = options;
  const { onCommit: committed = () => undefined, onUnconfirmed: unconfirmed = () => undefined } = options;
  const appending = createLanedBatcher<NewMessage, Appended>({
    ...limits,
    turns,
    timers,
    wholeTurns: true,
    commit: async (items, waitMs) => {
      const start = timers.monotonic();
      let noted = false;
      const answers = await appendBatch(db, items, waitMs, () => (noted = true)).catch((error: unknown) => {
        if (isUnanswered(error)) unconfirmed(items);
        throw error;
      });
      onBatch?.(items.length, timers.monotonic() - start);
      if (noted) committed();
      return answers;
    },
  });
  const reading = createLanedBatcher<ReadMark, ReadMarked>({
    ...limits,
    turns,
    timers,
    commit: (items, waitMs) => readBatch(db, items, waitMs),
  });
  return {
    /** Commits a message, or finds the one that this clientMsgId already made. */
    append: appending.add,
    markRead: reading.add,
    publish,
    /** Must be called after a commit elsewhere that may have left rows in the outbox. */
    committed,
    /** Must be called if it is unknown whether this was committed. */
    unconfirmed,
    idle: () => Promise.all([appending.idle(), reading.idle()]),
    get waiting(): number {
      return appending.waiting;
    },
  };
}
