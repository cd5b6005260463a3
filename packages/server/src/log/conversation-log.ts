import { ApiError } from '@parley/protocol';
import { createBatcher } from '../platform/batch.ts';
import type { Batcher } from '../platform/batch.ts';
import { Pace } from '../platform/pace.ts';
import { isUnavailable } from '../platform/postgres/db.ts';
import type { Db, Queryable } from '../platform/postgres/db.ts';
import { appendBatch } from './append.ts';
import type { Appended, NewMessage } from './append.ts';
import type { LogEvent } from './events.ts';
import { refusal, refusals } from './refusals.ts';

/**
 * The conversation log: the only place where a `seq` is given out.
 *
 * Messages go through a group commit (`append_batch`): all that arrive while the transaction before is in
 * flight go out as one. Everything else that happens in a conversation is rare and appends in the transaction of
 * its own operation (record.ts), under the same row lock, so seqs are contiguous whoever appends, in whichever process.
 * Events leave after the commit, through `publish`, and nowhere else.
 */

export interface ReadMark {
  env: number;
  conversationId: string;
  user: number;
  seq: number;
}
export interface ReadMarked {
  conv: number;
  lastReadSeq: number;
  unreadCount: number;
  changed: boolean;
}

const readSql = `SELECT ord, status, conv, read_seq, unread, changed FROM mark_read($1, $2, $3, $4)`;

/** A commit costs as much as a few dozen messages in it: at 3 messages per millisecond they are 24 ms apart, below 0.5 they do not wait. */
const commitMsPerRate = 8;
const commitMaxMs = 25;

export class ConversationLog {
  readonly #publish: (event: LogEvent) => void;
  readonly #onCommit: () => void;
  readonly #append: Batcher<NewMessage, Appended>;
  readonly #read: Batcher<ReadMark, ReadMarked>;

  constructor(options: {
    /** One connection of its own: appends never wait for the pool. */
    db: Db;
    publish: (event: LogEvent) => void;
    onBatch?: (size: number, ms: number) => void;
    /** Something was committed that may have left rows in the outbox. */
    onCommit?: () => void;
    /** What is committed would wait so long for sockets to be written: a commit may as well. */
    writeSpacing?: () => number;
    now?: () => number;
  }) {
    const { db, onBatch, writeSpacing = () => 0, now = () => performance.now() } = options;
    this.#publish = options.publish;
    this.#onCommit = options.onCommit ?? (() => undefined);
    const timed = async <T>(size: number, run: () => Promise<T>): Promise<T> => {
      const start = now();
      const result = await run();
      onBatch?.(size, now() - start);
      this.#onCommit();
      return result;
    };
    const limits = {
      maxBatch: 1_000,
      maxWaiting: 20_000,
      alone: (error: unknown) => !(error instanceof ApiError) && !isUnavailable(error),
    };
    this.#append = createBatcher<NewMessage, Appended>({
      ...limits,
      pace: new Pace(commitMsPerRate, () => Math.max(commitMaxMs, writeSpacing()), now),
      run: (items) => timed(items.length, () => appendBatch(db, items)),
    });
    this.#read = createBatcher<ReadMark, ReadMarked>({ ...limits, run: (items) => readBatch(db, items) });
  }

  /** Commits a message, or finds the one that this clientMsgId already made. */
  append(message: NewMessage): Promise<Appended> {
    return this.#append(message);
  }

  markRead(mark: ReadMark): Promise<ReadMarked> {
    return this.#read(mark);
  }

  publish(event: LogEvent): void {
    this.#publish(event);
  }

  /** Something was committed elsewhere that may have left rows in the outbox. */
  committed(): void {
    this.#onCommit();
  }

  async idle(): Promise<void> {
    await Promise.all([this.#append.idle(), this.#read.idle()]);
  }

  get waiting(): number {
    return this.#append.waiting;
  }
}

async function readBatch(db: Queryable, items: ReadMark[]): Promise<(ReadMarked | Error)[]> {
  const rows = await db.query<{
    ord: number;
    status: string;
    conv: number;
    read_seq: number;
    unread: number;
    changed: boolean;
  }>(readSql, [
    items.map((i) => i.env),
    items.map((i) => i.conversationId),
    items.map((i) => i.user),
    items.map((i) => i.seq),
  ]);
  const results = new Array<ReadMarked | Error>(items.length);
  for (const row of rows)
    results[row.ord - 1] =
      row.status in refusals
        ? refusal(row.status)
        : { conv: row.conv, lastReadSeq: row.read_seq, unreadCount: row.unread, changed: row.changed };
  return results;
}
