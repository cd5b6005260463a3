import { ApiError } from '@parley/protocol';
import { createBatcher } from '../platform/batch.ts';
import type { Batcher } from '../platform/batch.ts';
import { isUnavailable } from '../platform/postgres/db.ts';
import type { Db, Queryable, Tx } from '../platform/postgres/db.ts';
import type { LogEvent } from './events.ts';

/**
 * The conversation log: the only place where a `seq` is given out.
 *
 * Messages go through a group commit (`append_messages`): all that arrive while the transaction before is in
 * flight go out as one. Everything else that happens in a conversation is rare and appends in the transaction of
 * its own operation, under the same row lock, so seqs are contiguous whoever appends, in whichever process.
 * Events leave after the commit, through `publish`, and nowhere else.
 */

export interface NewMessage {
  env: number;
  conversationId: string;
  /** null: a system message. */
  sender: number | null;
  /** Sent by the user itself, so it also reads everything up to it. */
  own: boolean;
  clientMsgId: string | null;
  id: string;
  text: string | null;
  replyTo: string | null;
  metadata: string | null;
  /** JSON array of attachment ids. */
  attachments: string | null;
}

export interface Appended {
  status: 'ok' | 'duplicate';
  conv: number;
  seq: number;
  at: string;
  /** JSON of the attachment objects. */
  attachments: string | null;
}

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

/** A conversation whose row this transaction holds. */
export interface LockedConversation {
  env: number;
  no: number;
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  metadata: string | null;
  lastSeq: number;
  createdAt: string;
  deletedAt: string | null;
}

export interface NewEvent {
  type: string;
  message?: number;
  users?: number[];
  actor: number | null;
  data?: unknown;
}

const appendSql = `SELECT ord, status, conv, seq, at, attachments FROM append_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;
const readSql = `SELECT ord, status, conv, read_seq, unread, changed FROM mark_read($1, $2, $3, $4)`;

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
    now?: () => number;
  }) {
    const { db, onBatch, now = () => performance.now() } = options;
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

  async idle(): Promise<void> {
    await Promise.all([this.#append.idle(), this.#read.idle()]);
  }

  get waiting(): number {
    return this.#append.waiting;
  }

  /** Gives the event the next seq of a locked conversation. */
  async appendEvent(tx: Tx, conv: LockedConversation, event: NewEvent): Promise<{ seq: number; at: string }> {
    const [row] = await tx.query<{ seq: number; at: string; stale: boolean }>(
      `WITH moved AS (
         UPDATE conversations SET last_seq = last_seq + 1, last_activity_at = clock_timestamp()
         WHERE env = $1 AND no = $2
         RETURNING last_seq, last_activity_at, act < activity_step(last_activity_at) AS stale
       ), kept AS (
         INSERT INTO events (env, conv, seq, type, message, users, actor, data, created_at)
         SELECT $1, $2, last_seq, $3, $4, $5, $6, $7, last_activity_at FROM moved
       ), noted AS (
         INSERT INTO outbox (id, env, type, conv, seq, message, users, actor, data, created_at, due_at)
         SELECT make_id('evt_', last_activity_at), $1, $3, $2, last_seq, $4, $5, $6, $7, last_activity_at, last_activity_at
         FROM moved JOIN environments e ON e.no = $1 AND e.listeners <> 0
       ) SELECT last_seq AS seq, last_activity_at AS at, stale FROM moved`,
      [
        conv.env,
        conv.no,
        event.type,
        event.message ?? null,
        event.users ?? null,
        event.actor,
        event.data === undefined ? null : JSON.stringify(event.data),
      ],
    );
    if (row!.stale)
      await tx.query(
        'SELECT renew_activity(ARRAY[$1::int], ARRAY[$2::bigint], activity_step($3::timestamptz))',
        [conv.env, conv.no, row!.at],
      );
    conv.lastSeq = row!.seq;
    tx.afterCommit(this.#onCommit);
    return { seq: row!.seq, at: row!.at };
  }
}

/** Arrays in which nothing stands are not sent. */
const unlessEmpty = (values: (string | null)[]): (string | null)[] | null =>
  values.some((v) => v !== null) ? values : null;

async function appendBatch(db: Queryable, batch: NewMessage[]): Promise<(Appended | Error)[]> {
  const results = new Map<NewMessage, Appended | Error>();
  /** Keys whose message is committed: whatever repeats them is a duplicate, any number at once. */
  const known = new Set<string>();
  let items = batch;
  // One round, but for messages that must see another of this batch committed: the same clientMsgId or attachment again.
  while (items.length > 0) {
    const { first, again } = oncePerKey(items, known);
    items = again;
    try {
      for (const row of await appendRound(db, first)) {
        const item = first[row.ord - 1]!;
        if (row.status === 'again') items.push(item);
        else if (row.status in refusals) results.set(item, refusal(row.status));
        else {
          results.set(item, row as Appended);
          known.add(keyOf(item));
        }
      }
    } catch (error) {
      // What an earlier round committed must not be run again with the rest.
      if (results.size === 0) throw error;
      for (const item of [...first, ...again]) results.set(item, error as Error);
      break;
    }
  }
  return batch.map((item) => results.get(item)!);
}

const appendRound = (db: Queryable, items: NewMessage[]) =>
  db.query<Omit<Appended, 'status'> & { ord: number; status: string }>(appendSql, [
    items.map((i) => i.env),
    items.map((i) => i.conversationId),
    items.map((i) => i.sender),
    items.map((i) => i.own),
    items.map((i) => i.clientMsgId),
    items.map((i) => i.id),
    items.map((i) => i.text),
    unlessEmpty(items.map((i) => i.replyTo)),
    unlessEmpty(items.map((i) => i.metadata)),
    unlessEmpty(items.map((i) => i.attachments)),
  ]);

const keyOf = (item: NewMessage): string => `${item.conversationId} ${item.sender} ${item.clientMsgId}`;

function oncePerKey(
  items: NewMessage[],
  known: ReadonlySet<string>,
): { first: NewMessage[]; again: NewMessage[] } {
  const keys = new Set<string>();
  const first: NewMessage[] = [];
  const again: NewMessage[] = [];
  for (const item of items) {
    const key = keyOf(item);
    if (item.clientMsgId !== null && keys.has(key) && !known.has(key)) again.push(item);
    else first.push(item);
    keys.add(key);
  }
  return { first, again };
}

const refusals = {
  not_found: () => new ApiError('not_found', { message: 'There is no such conversation.' }),
  not_member: () => new ApiError('not_member'),
  reply_not_found: () =>
    new ApiError('invalid_request', {
      param: 'replyTo',
      message: 'replyTo must be a message of the same conversation.',
    }),
  attachment_not_ready: () =>
    new ApiError('attachment_not_ready', {
      param: 'attachments',
      message: 'An attachment is not ready, is used already, or is not of this conversation and sender.',
    }),
} as const;
const refusal = (status: string): ApiError => refusals[status as keyof typeof refusals]();

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
