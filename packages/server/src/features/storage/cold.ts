import { ApiError, rateLimits } from '@parley/protocol';
import type { Clock, Timers } from '../../platform/clock.ts';
import { HistoryError, QueueFull } from '../../platform/history/port.ts';
import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Tenant } from '../../platform/history/remote.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { isDisconnected } from './connections.ts';
import type { Connections } from './connections.ts';
import { coldSlots } from './sql.ts';

const readMs = 5_000;
/** If nothing was answered for this many milliseconds, one read goes on waiting, and all others are refused at once. */
const stallMs = 1_500;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;
const pageSize = 200;
const mostPages = 10;
/** How many reads of one environment run at once, in one process. */
const mostReads = 60;

/** After a failure no read tries the database for `pauseMs`, then one does. */
interface Circuit {
  pauseMs: number;
  openUntil: number;
  probing: boolean;
}

interface Read {
  startedAt: number;
  refuse(error: unknown): void;
}

/**
 * Reads messages that only the customer's database has. Our own store knows which messages exist and in which order;
 * their content comes from here. A database that is down costs one waiting request: while its circuit is open, all
 * others are refused at once.
 */
export function createCold(options: {
  db: Queryable;
  connections: Pick<Connections, 'open' | 'drop'>;
  limiter: RateLimiter;
  clock: Clock;
  timers: Timers;
  logger: Logger;
}) {
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
      if (!(error instanceof HistoryError) || error instanceof QueueFull) {
        if (probes && last) last.probing = false;
        throw error instanceof QueueFull ? unavailable(firstPauseMs) : error;
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
    const [verdict] = await limiter.take([
      { key: { what: 'cold', of: String(env) }, limit: rateLimits.coldHistory },
    ]);
    if (!verdict!.allowed) throw new ApiError('rate_limited', { retryAfterMs: verdict!.retryAfterMs });
  }

  /**
   * Asks the replica, then the database itself, then the previous one, until the answer is whole. `ask` gets what was
   * found before. Undefined if nothing is cold: what was cold a moment ago is in our store again.
   */
  async function search<T>(
    env: Tenant,
    ask: (history: History, before: T | undefined) => Promise<{ value: T; whole: boolean }>,
  ): Promise<T | undefined> {
    const slots = await coldSlots(db, env.no);
    if (slots === null) return undefined;
    await limited(env.no);
    return guarded(env.no, async () => {
      let found: T | undefined;
      for (const slot of slots)
        for (const purpose of slot.replicaUrl === null ? (['write'] as const) : (['read', 'write'] as const))
          try {
            const { value, whole } = await ask(await connections.open(env, slot, purpose), found);
            found = value;
            if (whole) return found;
          } catch (error) {
            if (isDisconnected(error)) connections.drop(env.no, slot.slot);
            // An unreachable replica is no reason to fail.
            if (purpose === 'write' || !(error instanceof HistoryError)) throw error;
          }
      return found;
    });
  }

  return {
    /** Messages of one conversation by seq; those that the database no longer has are missing. */
    async at(
      env: Tenant,
      conversationId: string,
      seqs: readonly number[],
    ): Promise<ReadonlyMap<number, MessageRecord>> {
      if (seqs.length === 0) return new Map();
      const wanted = new Set(seqs);
      const after = Math.min(...seqs) - 1;
      const found = await search<Map<number, MessageRecord>>(env, async (history, earlier) => {
        const value = new Map(earlier);
        let before = Math.max(...seqs) + 1;
        for (let pages = 0; pages < mostPages && before > after + 1; pages++) {
          const { data, hasMore, end } = await history.read({
            conversationId,
            before,
            after,
            limit: pageSize,
          });
          for (const record of data)
            if (wanted.has(record.seq) && !value.has(record.seq)) value.set(record.seq, record);
          const next = end ?? data.at(-1)?.seq;
          if (!hasMore || next === undefined) break;
          before = next;
        }
        return { value, whole: value.size === wanted.size };
      });
      return found ?? new Map();
    },
    async get(env: Tenant, messageId: string): Promise<MessageRecord | null> {
      const found = await search<MessageRecord | null>(env, async (history) => {
        const value = await history.get(messageId);
        return { value, whole: value !== null };
      });
      return found ?? null;
    },
  };
}

const unavailable = (ms: number) =>
  new ApiError('history_unavailable', { retryAfterMs: Math.max(1, Math.ceil(ms)) });
