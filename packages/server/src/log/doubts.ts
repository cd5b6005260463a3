import type { Timers } from '../platform/clock.ts';
import type { Logger } from '../platform/logging.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import type { LogEvent } from './events.ts';

/**
 * Commits whose answer was lost: it is unknown whether they happened, and nobody else was told. The store is asked
 * until it answers, and what is found in it is published late. Clients that have it already ignore it.
 */

/** A message by its id; or an event as it would have been sent, with the time it would be stored with. */
export type Doubt = { env: number; id: string } | { event: LogEvent; at: string };

/** Milliseconds after the loss at which the store is asked: at first the statement may still be running in PostgreSQL. */
const looksMs = [500, 2_000, 8_000, 30_000];
const retryMs = 1_000;
/** More than two batches; clients learn of any more by their next sync. */
const maxDoubts = 5_000;

export interface Doubts {
  add(doubts: readonly Doubt[]): void;
}

export function createDoubts(options: {
  db: Queryable;
  /** Those of the messages that are in the store, as events. */
  messages: (of: readonly { env: number; id: string }[]) => Promise<LogEvent[]>;
  publish: (event: LogEvent) => void;
  timers: Timers;
  logger: Logger;
}): Doubts {
  const { db, timers, logger } = options;
  let held = 0;

  async function find(doubts: readonly Doubt[]): Promise<LogEvent[]> {
    const messages = doubts.filter((d) => 'id' in d);
    const events = doubts.filter((d) => 'event' in d);
    const kept =
      events.length === 0
        ? []
        : await db.query<{ ord: number }>(keptSql, [
            events.map(({ event }) => event.env),
            events.map(({ event }) => event.conv),
            events.map(({ event }) => event.seq),
            events.map(({ at }) => at),
          ]);
    return [
      ...(messages.length === 0 ? [] : await options.messages(messages)),
      ...kept.map(({ ord }) => events[ord - 1]!.event),
    ].sort((a, b) => a.seq - b.seq);
  }

  const look = async (doubts: readonly Doubt[], looks: number): Promise<void> => {
    let next = looks + 1;
    let pause = looksMs[next]! - looksMs[looks]!;
    try {
      const found = await find(doubts);
      for (const event of found) options.publish(event);
      if (found.length === doubts.length || next === looksMs.length) {
        held -= doubts.length;
        return;
      }
    } catch (error) {
      logger.debug({ err: error }, 'what was committed cannot be told yet');
      next = looks;
      pause = retryMs;
    }
    timers.after(pause, () => void look(doubts, next));
  };

  return {
    add(doubts) {
      const taken = doubts.slice(0, maxDoubts - held);
      if (taken.length === 0) return;
      held += taken.length;
      timers.after(looksMs[0]!, () => void look(taken, 0));
    },
  };
}

const keptSql = `SELECT u.ord FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS u(env, conv, seq, at, ord)
  CROSS JOIN LATERAL (
    SELECT 1 FROM events WHERE env = u.env AND conv = u.conv AND seq = u.seq AND created_at = u.at LIMIT 1
  ) e ORDER BY u.seq`;
