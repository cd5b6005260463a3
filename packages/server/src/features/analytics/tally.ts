import type { Queryable } from '../../platform/postgres/db.ts';
import { addCounts } from './sql.ts';

/**
 * What is counted in memory and written every few seconds, in one statement. A process that is killed loses what it
 * had not written yet, so this is for figures that may be slightly too low: requests, sockets, times. Figures that
 * must be exact are recorded in the store by the transaction that causes them (migrations/0025).
 */
export type TallyName =
  | 'apiRequests'
  | 'requests2xx'
  | 'requests4xx'
  | 'requests5xx'
  | 'errors'
  | 'rejected'
  | 'reports'
  | 'socketsOpened'
  | 'acks'
  | 'ackMs'
  | 'fanouts'
  | 'fanoutMs'
  | 'hookCalls'
  | 'hookFailures'
  | 'hooksFailedOpen';

type Counts = Partial<Record<TallyName | 'peakConnections', number>>;

export class Tally {
  /** Counts by environment number; there are no more of them than the store has environments. */
  #counts = new Map<number, Counts>();
  /** Messages between their commit and the next write to sockets, and the sum of the ticks of their commits. */
  readonly #leaving = new Map<number, { n: number; ticks: number }>();

  add(env: number, name: TallyName, n = 1): void {
    const counts = this.#of(env);
    counts[name] = (counts[name] ?? 0) + n;
  }

  ack(env: number, ms: number): void {
    this.add(env, 'acks');
    this.add(env, 'ackMs', ms);
  }

  /** A message was committed at this tick, and is on its way to sockets here; it leaves with the next write. */
  fanout(env: number, tick: number): void {
    const { n, ticks } = this.#leaving.get(env) ?? { n: 0, ticks: 0 };
    this.#leaving.set(env, { n: n + 1, ticks: ticks + tick });
  }

  flushedFanouts(tick: number): void {
    for (const [env, { n, ticks }] of this.#leaving) {
      this.add(env, 'fanouts', n);
      this.add(env, 'fanoutMs', n * tick - ticks);
    }
    this.#leaving.clear();
  }

  /** A REST request was answered. */
  request(env: number, status: number): void {
    this.add(env, 'apiRequests');
    if (status < 400) this.add(env, 'requests2xx');
    else if (status < 500) this.add(env, 'requests4xx');
    else {
      this.add(env, 'requests5xx');
      this.add(env, 'errors');
    }
  }

  /** This many sockets are open at this moment. */
  connections(env: number, n: number): void {
    const counts = this.#of(env);
    if (n > (counts.peakConnections ?? 0)) counts.peakConnections = n;
  }

  #of(env: number): Counts {
    let counts = this.#counts.get(env);
    if (!counts) this.#counts.set(env, (counts = {}));
    return counts;
  }

  /** Writes the counts, which count for the hour and day of the writing. If it fails, they are written with the next ones. */
  async flush(db: Queryable): Promise<void> {
    if (this.#counts.size === 0) return;
    const taken = this.#counts;
    this.#counts = new Map();
    try {
      await addCounts(
        db,
        [...taken].map(([env, counts]) => ({ env, counts: rounded(counts) })),
      );
    } catch (error) {
      for (const [env, { peakConnections = 0, ...counts }] of taken) {
        this.connections(env, peakConnections);
        for (const [name, n] of Object.entries(counts)) this.add(env, name as TallyName, n);
      }
      throw error;
    }
  }
}

/** Times are sums of fractions: 0.001 ms is precise enough. */
const rounded = (counts: Counts): Counts =>
  Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, Math.round(n * 1000) / 1000]));
