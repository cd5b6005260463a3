import type { Timers } from '../platform/clock.ts';
import type { Logger } from '../platform/logging.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import type { LogEvent } from './events.ts';
import { storedOf } from './sql/events.ts';

/**
 * Commits whose answer was lost: it is unknown whether they happened, and their events were not published. This module
 * asks the store until it answers, and publishes what it finds there late. Clients that have an event already ignore it.
 */

/** A message by its id; or an event as it would have been sent, with the time it would be stored with. */
export type Unconfirmed = { env: number; id: string } | { event: LogEvent; at: string };

/** Milliseconds after the loss at which the store is asked: at first the statement may still be running in PostgreSQL. */
const looksMs = [500, 2_000, 8_000, 30_000];
const retryMs = 1_000;
/** More than two batches; clients learn of any more by their next sync. */
const maxHeld = 5_000;

export function createUnconfirmedCommits(options: {
  db: Queryable;
  /** Those of the messages that are in the store, as events. */
  messages: (of: readonly { env: number; id: string }[]) => Promise<LogEvent[]>;
  publish: (event: LogEvent) => void;
  timers: Timers;
  logger: Logger;
}) {
  const { db, timers, logger } = options;
  let held = 0;

  async function find(commits: readonly Unconfirmed[]): Promise<LogEvent[]> {
    const messages = commits.filter((c) => 'id' in c);
    const stored = await storedOf(
      db,
      commits.filter((c) => 'event' in c),
    );
    return [...(messages.length === 0 ? [] : await options.messages(messages)), ...stored].sort(
      (a, b) => a.seq - b.seq,
    );
  }

  const look = async (commits: readonly Unconfirmed[], looks: number): Promise<void> => {
    let next = looks + 1;
    let pause = looksMs[next]! - looksMs[looks]!;
    try {
      const found = await find(commits);
      for (const event of found) options.publish(event);
      if (found.length === commits.length || next === looksMs.length) {
        held -= commits.length;
        return;
      }
    } catch (error) {
      logger.debug({ err: error }, 'the store cannot say yet what was committed');
      next = looks;
      pause = retryMs;
    }
    timers.after(pause, () => void look(commits, next));
  };

  return {
    add(commits: readonly Unconfirmed[]): void {
      const taken = commits.slice(0, maxHeld - held);
      if (taken.length === 0) return;
      held += taken.length;
      timers.after(looksMs[0]!, () => void look(taken, 0));
    },
  };
}
