import type { Batcher } from '../platform/flow/batcher.ts';
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

export class ConversationLog {
  readonly #publish: (event: LogEvent) => void;
  readonly #onCommit: () => void;
  readonly #onUnconfirmed: (commits: readonly Unconfirmed[]) => void;
  readonly #append: Batcher<NewMessage, Appended>;
  readonly #read: Batcher<ReadMark, ReadMarked>;

  constructor(options: {
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
    const { db, onBatch, timers = systemTimers } = options;
    this.#publish = options.publish;
    this.#onCommit = options.onCommit ?? (() => undefined);
    this.#onUnconfirmed = options.onUnconfirmed ?? (() => undefined);
    this.#append = createLanedBatcher<NewMessage, Appended>({
      ...limits,
      turns,
      timers,
      wholeTurns: true,
      commit: async (items, waitMs) => {
        const start = timers.monotonic();
        let noted = false;
        const answers = await appendBatch(db, items, waitMs, () => (noted = true)).catch((error: unknown) => {
          if (isUnanswered(error)) this.unconfirmed(items);
          throw error;
        });
        onBatch?.(items.length, timers.monotonic() - start);
        if (noted) this.#onCommit();
        return answers;
      },
    });
    this.#read = createLanedBatcher<ReadMark, ReadMarked>({
      ...limits,
      turns,
      timers,
      commit: (items, waitMs) => readBatch(db, items, waitMs),
    });
  }

  /** Commits a message, or finds the one that this clientMsgId already made. */
  append(message: NewMessage): Promise<Appended> {
    return this.#append.add(message);
  }

  markRead(mark: ReadMark): Promise<ReadMarked> {
    return this.#read.add(mark);
  }

  publish(event: LogEvent): void {
    this.#publish(event);
  }

  /** Must be called after a commit elsewhere that may have left rows in the outbox. */
  committed(): void {
    this.#onCommit();
  }

  unconfirmed(commits: readonly Unconfirmed[]): void {
    this.#onUnconfirmed(commits);
  }

  async idle(): Promise<void> {
    await Promise.all([this.#append.idle(), this.#read.idle()]);
  }

  get waiting(): number {
    return this.#append.waiting;
  }
}
