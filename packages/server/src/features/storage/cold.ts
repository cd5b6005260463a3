import { ApiError, rateLimits } from '@parley/protocol';
import type { Clock, Timers } from '../../platform/clock.ts';
import { HistoryError, QueueFull } from '../../platform/history/port.ts';
import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { Connections } from './connections.ts';
import { coldSlots } from './sql.ts';
import type { SlotName, SlotRow } from './sql.ts';

/**
 * Reads messages that only the customer's database has. Our own store knows which messages exist and in which order;
 * their content comes from here. A database that is down costs one waiting request: while its circuit is open, all
 * others are refused at once.
 */
export interface Cold {
  /**
   * Messages of one conversation by seq; those that the database no longer has are missing. With `ahead`, what was
   * read ahead is used if it has them all.
   */
  at(
    env: { no: number; id: string },
    place: ColdPlace,
    seqs: readonly number[],
    ahead?: Ahead,
  ): Promise<ReadonlyMap<number, MessageRecord>>;
  /**
   * Begins to read the page below a seq if this reader has read cold messages up to there: whoever scrolls back waits
   * for both databases at once, and not for one after the other. Undefined otherwise.
   */
  ahead(env: { no: number; id: string }, place: ColdPlace, before: number, limit: number): Ahead | undefined;
  get(env: { no: number; id: string }, messageId: string): Promise<MessageRecord | null>;
  /** Called after a fault of a database: the next read looks up its slots before it asks. */
  forget(env: number): void;
}

/** A conversation, and the number of the user who reads it; null if a server does. */
export interface ColdPlace {
  conversationId: string;
  reader: number | null;
}

/** What is being read ahead. It never rejects: what could not be read is missing. */
export interface Ahead {
  /** The reader found cold messages up to this seq. */
  upTo: number;
  records: Promise<ReadonlyMap<number, MessageRecord>>;
}

const readMs = 5_000;
/** If nothing was answered for this many milliseconds, one read goes on waiting, and all others are refused at once. */
const stallMs = 1_500;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;
const pageSize = 200;
const mostPages = 10;
/**
 * How many seqs are looked at for each message that is read ahead. Without a lower bound PostgreSQL may read the whole
 * conversation and sort it; most seqs are messages.
 */
const aheadWidth = 4;
/** How many reads of one environment run at once, in one process. */
const mostReads = 60;
/** How many environments' slots, and how many readers' places, are remembered; beyond, all are forgotten and looked up anew. */
const mostKnown = 10_000;

/** After a failure no read tries the database for `pauseMs`, then one does. */
interface Circuit {
  pauseMs: number;
  openUntil: number;
  probing: boolean;
}

/** A running read. */
interface Read {
  startedAt: number;
  refuse(error: unknown): void;
}

export function createCold(options: {
  db: Queryable;
  connections: Pick<Connections, 'open' | 'drop'>;
  limiter: RateLimiter;
  clock: Clock;
  timers: Timers;
  logger: Logger;
}): Cold {
  const { db, connections, limiter, clock, timers, logger } = options;
  const circuits = new Map<number, Circuit>();
  const reads = new Map<number, Set<Read>>();
  const answeredAt = new Map<number, number>();

  async function guarded<T>(env: number, work: () => Promise<T>): Promise<T> {
    const circuit = circuits.get(env);
    const now = clock.monotonic();
    if (circuit && (circuit.probing || now < circuit.openUntil))
      throw unavailable(circuit.probing ? firstPauseMs : circuit.openUntil - now);
    const others = reads.get(env) ?? new Set();
    if (others.size >= mostReads) throw unavailable(firstPauseMs);
    reads.set(env, others);
    if (circuit) circuit.probing = true;
    let probes = circuit !== undefined;
    const ends: (() => void)[] = [];
    const read: Read = { startedAt: now, refuse: () => undefined };
    others.add(read);
    try {
      const result = await new Promise<T>((resolve, reject) => {
        read.refuse = reject;
        ends.push(
          timers.after(readMs, () => reject(new HistoryError('timeout', undefined))),
          timers.after(stallMs, () => {
            if (circuits.has(env) || (answeredAt.get(env) ?? -Infinity) > read.startedAt) return;
            circuits.set(env, { pauseMs: firstPauseMs / 2, openUntil: 0, probing: true });
            probes = true;
            for (const other of others) if (other !== read) other.refuse(unavailable(firstPauseMs));
          }),
        );
        work().then(resolve, reject);
      });
      circuits.delete(env);
      answeredAt.set(env, clock.monotonic());
      return result;
    } catch (error) {
      const last = circuits.get(env);
      if (!(error instanceof HistoryError)) {
        if (probes && last) last.probing = false;
        throw error;
      }
      // The next look may find it suspect or set aside.
      known.delete(env);
      if (error instanceof QueueFull) {
        if (probes && last) last.probing = false;
        throw unavailable(firstPauseMs);
      }
      const pauseMs = Math.min(longestPauseMs, probes && last ? last.pauseMs * 2 : firstPauseMs);
      circuits.set(env, { pauseMs, openUntil: clock.monotonic() + pauseMs, probing: false });
      // A connection that hangs is neither waited for nor used again.
      if (error.errorClass === 'timeout') for (const slot of ['a', 'b'] as const) connections.drop(env, slot);
      logger.warn(
        { env, errorClass: error.errorClass, reason: error.message },
        'a history database could not be read',
      );
      throw unavailable(pauseMs);
    } finally {
      for (const end of ends) end();
      others.delete(read);
      if (others.size === 0) {
        reads.delete(env);
        answeredAt.delete(env);
      }
    }
  }

  async function limited(env: number): Promise<void> {
    const [verdict] = await limiter.take([{ key: `cold:${env}`, limit: rateLimits.coldHistory }]);
    if (!verdict!.allowed) throw new ApiError('rate_limited', { retryAfterMs: verdict!.retryAfterMs });
  }

  /**
   * The slots as they were when last read. They are asked while a new query makes sure that they are still the right
   * ones.
   */
  const known = new Map<number, SlotRow[]>();
  /** Up to which seq a reader last found the messages of a conversation cold. */
  const coldUpTo = new Map<string, number>();
  async function look(env: number): Promise<SlotRow[]> {
    // No slots: what was cold a moment ago is back in our store, except for what the database no longer had.
    const slots = (await coldSlots(db, env)) ?? [];
    remember(known, env, slots);
    return slots;
  }

  /** An answer, and whether it is complete. */
  type Ask<T> = (history: History, before: T | undefined) => Promise<{ value: T; whole: boolean }>;

  async function search<T>(env: { no: number; id: string }, ask: Ask<T>): Promise<T | undefined> {
    const before = known.get(env.no);
    const looking = look(env.no);
    if (before) {
      const [now, early] = await Promise.allSettled([looking, askAll(env, before, ask)]);
      if (now.status === 'rejected') throw now.reason;
      if (isSame(now.value, before)) {
        if (early.status === 'rejected') throw early.reason;
        return early.value;
      }
    }
    return askAll(env, await looking, ask);
  }

  /** Asks the replica, then the database itself, then the previous one, until everything is found. */
  async function askAll<T>(
    env: { no: number; id: string },
    slots: readonly SlotRow[],
    ask: Ask<T>,
  ): Promise<T | undefined> {
    let found: T | undefined;
    for (const slot of slots)
      for (const purpose of slot.replicaUrl === null ? (['write'] as const) : (['read', 'write'] as const))
        try {
          const { value, whole } = await ask(await connections.open(env, slot, purpose), found);
          found = value;
          if (whole) return found;
        } catch (error) {
          if (isGone(error)) connections.drop(env.no, slot.slot as SlotName);
          // An unreachable replica is no reason to fail.
          if (purpose === 'write' || !(error instanceof HistoryError)) throw error;
        }
    return found;
  }

  return {
    forget: (env) => void known.delete(env),
    ahead(env, { conversationId, reader }, before, limit) {
      const key = keyOf(env.no, conversationId, reader);
      const upTo = coldUpTo.get(key);
      if (upTo === undefined || before > upTo + 1) return undefined;
      // `at` puts it back, so a reader who may no longer read, or whose messages came back, costs one query.
      coldUpTo.delete(key);
      const page = async () => {
        await limited(env.no);
        return guarded(env.no, () =>
          search<Map<number, MessageRecord>>(env, async (history, earlier) => {
            const after = Math.max(0, before - 1 - aheadWidth * limit);
            const { data } = await history.read({ conversationId, before, after, limit });
            const value = new Map(earlier);
            for (const record of data) if (!value.has(record.seq)) value.set(record.seq, record);
            return { value, whole: data.length > 0 };
          }),
        );
      };
      const none = new Map<number, MessageRecord>();
      return {
        upTo,
        records: page().then(
          (found) => found ?? none,
          () => none,
        ),
      };
    },
    async at(env, { conversationId, reader }, seqs, ahead) {
      if (seqs.length === 0) return new Map();
      const highest = Math.max(...seqs);
      remember(coldUpTo, keyOf(env.no, conversationId, reader), Math.max(highest, ahead?.upTo ?? 0));
      const early = await ahead?.records;
      if (early && seqs.every((seq) => early.has(seq))) return early;
      await limited(env.no);
      const wanted = new Set(seqs);
      const lowest = Math.min(...seqs) - 1;
      const found = await guarded(env.no, () =>
        search<Map<number, MessageRecord>>(env, async (history, earlier) => {
          const value = new Map(earlier);
          let before = highest + 1;
          for (let pages = 0; pages < mostPages && before > lowest + 1; pages++) {
            const { data, hasMore, end } = await history.read({
              conversationId,
              before,
              after: lowest,
              limit: pageSize,
            });
            for (const record of data)
              if (wanted.has(record.seq) && !value.has(record.seq)) value.set(record.seq, record);
            const next = end ?? data.at(-1)?.seq;
            if (!hasMore || next === undefined) break;
            before = next;
          }
          return { value, whole: value.size === wanted.size };
        }),
      );
      return found ?? new Map();
    },
    async get(env, messageId) {
      if ((await coldSlots(db, env.no)) === null) return null;
      await limited(env.no);
      const found = await guarded(env.no, () =>
        search<MessageRecord | null>(env, async (history) => {
          const value = await history.get(messageId);
          return { value, whole: value !== null };
        }),
      );
      return found ?? null;
    },
  };
}

const keyOf = (env: number, conversationId: string, reader: number | null): string =>
  `${env} ${reader} ${conversationId}`;

function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  if (map.size >= mostKnown) map.clear();
  map.set(key, value);
}

const isSame = (a: readonly SlotRow[], b: readonly SlotRow[]): boolean =>
  a.length === b.length &&
  a.every(
    ({ slot, changedAt, aside, suspect }, i) =>
      slot === b[i]!.slot &&
      changedAt === b[i]!.changedAt &&
      aside === b[i]!.aside &&
      suspect === b[i]!.suspect,
  );

export const isGone = (error: unknown): boolean =>
  error instanceof HistoryError &&
  !(error instanceof QueueFull) &&
  ['unreachable', 'timeout', 'authentication', 'tls', 'overloaded'].includes(error.errorClass);

const unavailable = (ms: number) =>
  new ApiError('history_unavailable', { retryAfterMs: Math.max(1, Math.ceil(ms)) });
