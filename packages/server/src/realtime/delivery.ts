import { setTimeout as delay } from 'node:timers/promises';
import { limits, realtime } from '@parley/protocol';
import type { Signals } from '../features/context.ts';
import type { Logger } from '../platform/logging.ts';
import type { Queryable } from '../platform/postgres/db.ts';
import type { LocalUser } from './local-user.ts';
import type { LiveSession } from './local-user.ts';
import { markDelivered } from '../log/sql/delivery-marks.ts';

/** How many conversations of one session may wait; further marks are dropped, and clients send them again. */
const maxWaiting = limits.deliveredItems * 5;

/** How many marks one statement writes. It locks the conversations of its marks, and sends wait for it. */
const marksPerStatement = 500;

const flushTries = 5;
const flushPauseMs = 100;

interface Mark {
  session: LiveSession;
  user: LocalUser;
  cid: string;
  seq: number;
}

/**
 * receipts#delivered: `delivered` marks, stored as the greater of stored and new. However often a client sends
 * marks, they are written at most once per second, those of all sessions together, and the last ones always are. A
 * mark whose conversation another transaction has locked waits for the next time.
 */
export class Delivery {
  #waiting = new Set<LiveSession>();
  #writing: Promise<void> | null = null;
  #nextAt = 0;
  readonly #db: Queryable;
  readonly #receipt: Signals['receipt'];
  readonly #now: () => number;
  readonly #logger: Logger;

  constructor(options: { db: Queryable; receipt: Signals['receipt']; now: () => number; logger: Logger }) {
    this.#db = options.db;
    this.#receipt = options.receipt;
    this.#now = options.now;
    this.#logger = options.logger;
  }

  add(session: LiveSession, items: { cid: string; seq: number }[]): void {
    session.delivered ??= new Map();
    for (const { cid, seq } of items) {
      const before = session.delivered.get(cid);
      if (before === undefined && session.delivered.size >= maxWaiting) continue;
      if (before === undefined || before < seq) session.delivered.set(cid, seq);
    }
    this.#waiting.add(session);
  }

  /** Called a few times a second. */
  tick(): void {
    if (this.#waiting.size === 0 || this.#writing || this.#now() < this.#nextAt) return;
    this.#nextAt = this.#now() + realtime.deliveredMs;
    this.#writing = this.#write().finally(() => {
      this.#writing = null;
    });
  }

  /** Resolves when the session's marks are written, or could not be. */
  async written(session: LiveSession): Promise<void> {
    for (let tries = 1; tries <= flushTries && (this.#writing || this.#waiting.has(session)); tries++)
      await (this.#writing ??= this.#write().finally(() => {
        this.#writing = null;
      }));
  }

  /** Runs at shutdown. A conversation that another transaction has locked is tried a few times. */
  async flush(): Promise<void> {
    await this.#writing;
    for (let tries = 1; tries <= flushTries; tries++) {
      await this.#write();
      if (this.#waiting.size === 0) return;
      await delay(flushPauseMs);
    }
  }

  async #write(): Promise<void> {
    const marks: Mark[] = [];
    for (const session of this.#waiting) {
      const { user } = session;
      if (user && session.delivered)
        for (const [cid, seq] of session.delivered) marks.push({ session, user, cid, seq });
      session.delivered = undefined;
    }
    this.#waiting = new Set();
    for (let at = 0; at < marks.length; at += marksPerStatement)
      await this.#mark(marks.slice(at, at + marksPerStatement));
  }

  async #mark(marks: Mark[]): Promise<void> {
    try {
      const rows = await markDelivered(
        this.#db,
        marks.map(({ user, cid, seq }) => ({ env: user.env, cid, user: user.no, seq })),
      );
      for (const row of rows) {
        const { session, user, cid, seq } = marks[row.ord - 1]!;
        if (row.seq === null) this.add(session, [{ cid, seq }]);
        else this.#receipt({ env: user.env, cid, user: user.no, userId: user.id, lastDeliveredSeq: row.seq });
      }
    } catch (error) {
      // Clients acknowledge again with their next message.
      this.#logger.warn({ err: error, marks: marks.length }, 'delivery marks were not written');
    }
  }
}
