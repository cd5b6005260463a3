import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, rateLimits } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import { HistoryError } from '../../platform/history/port.ts';
import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { Connections } from './connections.ts';
import { slotsOf, storageOf } from './sql.ts';
import type { SlotName, SlotRow } from './sql.ts';

/**
 * Reading what only the customer's database has. Our own store knows which messages there are and in which order; here is what
 * they say. A database that is down costs one waiting request: while its circuit is open, all others are refused at once.
 */
export interface Cold {
  /** Of one conversation, by seq; those that the database has no more are missing. */
  at(
    env: { no: number; id: string },
    conversationId: string,
    seqs: readonly number[],
  ): Promise<Map<number, MessageRecord>>;
  get(env: { no: number; id: string }, messageId: string): Promise<MessageRecord | null>;
}

const readMs = 5_000;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;
const pageSize = 200;
const mostPages = 10;
/** Reads of one environment under way at once, in one process. */
const mostReads = 60;

/** After a failure nobody else tries for a while, then one does. */
interface Circuit {
  pauseMs: number;
  openUntil: number;
  probing: boolean;
}

export function createCold(options: {
  db: Queryable;
  connections: Connections;
  limiter: RateLimiter;
  clock: Clock;
  logger: Logger;
}): Cold {
  const { db, connections, limiter, clock, logger } = options;
  const circuits = new Map<number, Circuit>();
  const reads = new Map<number, number>();

  async function guarded<T>(env: number, work: () => Promise<T>): Promise<T> {
    const circuit = circuits.get(env);
    const now = clock.monotonic();
    if (circuit && (circuit.probing || now < circuit.openUntil))
      throw unavailable(circuit.probing ? firstPauseMs : circuit.openUntil - now);
    const running = reads.get(env) ?? 0;
    if (running >= mostReads) throw unavailable(firstPauseMs);
    reads.set(env, running + 1);
    if (circuit) circuit.probing = true;
    const ender = new AbortController();
    try {
      const late = delay(readMs, undefined, { signal: ender.signal }).then(() => {
        throw new HistoryError('timeout', undefined);
      });
      late.catch(() => undefined);
      const result = await Promise.race([work(), late]);
      circuits.delete(env);
      return result;
    } catch (error) {
      if (!(error instanceof HistoryError)) {
        if (circuit) circuit.probing = false;
        throw error;
      }
      const pauseMs = Math.min(longestPauseMs, circuit ? circuit.pauseMs * 2 : firstPauseMs);
      circuits.set(env, { pauseMs, openUntil: clock.monotonic() + pauseMs, probing: false });
      logger.warn(
        { env, errorClass: error.errorClass, reason: error.message },
        'a history database could not be read',
      );
      throw unavailable(pauseMs);
    } finally {
      ender.abort();
      const left = reads.get(env)! - 1;
      if (left > 0) reads.set(env, left);
      else reads.delete(env);
    }
  }

  async function limited(env: number): Promise<void> {
    const [verdict] = await limiter.take([{ key: `cold:${env}`, limit: rateLimits.coldHistory }]);
    if (!verdict!.allowed) throw new ApiError('rate_limited', { retryAfterMs: verdict!.retryAfterMs });
  }

  /** The slots that may hold it, the newest first. */
  async function slots(env: number): Promise<SlotRow[]> {
    const [storage, rows] = await Promise.all([storageOf(db, env), slotsOf(db, env)]);
    // Messages that are cold, and no database that could have them.
    if (storage.active === null) throw unavailable(longestPauseMs);
    if (!storage.hasCold) return [];
    const named = [storage.active, ...(storage.previous ? [storage.previous] : [])];
    return named.flatMap((name) => rows.find((row) => row.slot === name) ?? []);
  }

  /** Asks the replica, then the database itself, then the one before it, until all is found. */
  async function search(
    env: { no: number; id: string },
    ask: (history: History) => Promise<boolean>,
  ): Promise<void> {
    for (const slot of await slots(env.no))
      for (const purpose of slot.replicaUrl === null ? (['write'] as const) : (['read', 'write'] as const))
        try {
          if (await ask(await connections.open(env, slot, purpose))) return;
        } catch (error) {
          if (isGone(error)) connections.drop(env.no, slot.slot as SlotName);
          // A replica that is away is no reason to fail.
          if (purpose === 'write' || !(error instanceof HistoryError)) throw error;
        }
  }

  return {
    async at(env, conversationId, seqs) {
      const found = new Map<number, MessageRecord>();
      if (seqs.length === 0) return found;
      await limited(env.no);
      const wanted = new Set(seqs);
      await guarded(env.no, () =>
        search(env, async (history) => {
          const lowest = Math.min(...seqs) - 1;
          let before = Math.max(...seqs) + 1;
          for (let pages = 0; pages < mostPages && before > lowest + 1; pages++) {
            const { data, hasMore } = await history.read({
              conversationId,
              before,
              after: lowest,
              limit: pageSize,
            });
            for (const record of data)
              if (wanted.has(record.seq) && !found.has(record.seq)) found.set(record.seq, record);
            if (!hasMore || data.length === 0) break;
            before = data.at(-1)!.seq;
          }
          return found.size === wanted.size;
        }),
      );
      return found;
    },
    async get(env, messageId) {
      const storage = await storageOf(db, env.no);
      if (!storage.hasCold || storage.active === null) return null;
      await limited(env.no);
      let found: MessageRecord | null = null;
      await guarded(env.no, () =>
        search(env, async (history) => {
          found = await history.get(messageId);
          return found !== null;
        }),
      );
      return found;
    },
  };
}

export const isGone = (error: unknown): boolean =>
  error instanceof HistoryError &&
  ['unreachable', 'timeout', 'authentication', 'tls', 'overloaded'].includes(error.errorClass);

const unavailable = (ms: number) =>
  new ApiError('history_unavailable', { retryAfterMs: Math.max(1, Math.ceil(ms)) });
