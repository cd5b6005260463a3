import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { CountsByKey } from '../../platform/flow/counts-by-key.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { activityNames } from './rows.ts';
import type { Counts, LogRow } from './rows.ts';
import { addActivity, insertRows, keepPartitions } from './sql.ts';

/**
 * What happens in environments, collected here and written once a second, so that no request waits for it. The
 * collection is bounded: of one environment and second, only the first successes and the first failures are kept, and
 * the others are only counted. So are successes beyond what all environments may have together, because a log must
 * cost little however many there are. While the store is unreachable, rows wait as far as the buffer has room.
 */

/** How many rows of one environment are kept per second, in this process. */
const successesPerSecond = 200;
const failuresPerSecond = 500;
/** How many successes of all environments are kept per second; an even share of it is kept for each in any case. */
const successesInAll = 500;
/** How many rows may wait, of all environments and of one, so that one cannot fill the buffer alone. */
const mostWaiting = 20_000;
const mostWaitingOfOne = 5_000;

export type Recorder = ReturnType<typeof createRecorder>;

const flushMs = 1_000;
/**
 * Milliseconds between writes of counts. They are written less often than rows, because a row that is updated every
 * second leaves many dead versions.
 */
const countsMs = 5_000;
const partitionsMs = 3_600_000;
const batch = 2_000;
export const stepMs = 10_000;
/** How many counts (by step and environment) may wait for the store; further ones are lost. */
const maxCounts = 50_000;

interface Counted {
  env: number;
  step: number;
  counts: Counts;
}

export function createRecorder(options: {
  db: Queryable;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
  /** If false, nothing is kept or counted. */
  keep?: boolean;
}) {
  const { db, clock, logger, keep = true } = options;
  const dropped = options.metrics?.counter(
    'parley_log_left_out_total',
    'Rows that the log left out, by reason',
    ['reason'],
  );
  let waiting: LogRow[] = [];
  /** How many rows of each environment wait. */
  let waitingOf = new CountsByKey<number>();
  let second = 0;
  /** How many rows of each environment were kept in this second. */
  const kept = new Map<number, { successes: number; failures: number }>();
  /** How many successes were kept in this second, and how many each environment may have whatever the others have. */
  let successes = 0;
  let share = successesInAll;
  /** Counts by step and environment. */
  let counts = new Map<string, Counted>();

  function count(env: number, at: number): Counts {
    const step = at - (at % stepMs);
    const key = `${env} ${step}`;
    let found = counts.get(key);
    if (!found) {
      found = { env, step, counts: zero() };
      if (counts.size < maxCounts) counts.set(key, found);
    }
    return found.counts;
  }

  function tally(row: LogRow): void {
    const of = count(row.env, row.at);
    if (row.kind === 'socket') of.socket_errors++;
    else if (row.kind === 'webhook') of[row.failed ? 'webhooks_failed' : 'webhooks_ok']++;
    else if (row.kind === 'request') {
      of.requests++;
      if (row.failed) of.errors++;
      if ((row.status ?? 0) >= 500) of.server_errors++;
    }
  }

  function isKept(row: LogRow): boolean {
    const now = Math.floor(row.at / 1_000);
    if (now !== second) {
      second = now;
      share = Math.ceil(successesInAll / Math.max(1, kept.size));
      successes = 0;
      kept.clear();
    }
    let of = kept.get(row.env);
    if (!of) kept.set(row.env, (of = { successes: 0, failures: 0 }));
    if (row.failed) return ++of.failures <= failuresPerSecond;
    const fits =
      ++of.successes <= successesPerSecond && (of.successes <= share || successes < successesInAll);
    if (fits) successes++;
    return fits;
  }

  function hasRoom(env: number): boolean {
    if (waiting.length >= mostWaiting || waitingOf.of(env) >= mostWaitingOfOne) return false;
    waitingOf.add(env, 1);
    return true;
  }

  /** Counts what happened, and keeps the row if the bounds allow it. */
  function add(row: LogRow): void {
    if (!keep) return;
    tally(row);
    if (!isKept(row)) dropped?.inc({ reason: 'rate' });
    else if (!hasRoom(row.env)) dropped?.inc({ reason: 'room' });
    else waiting.push(row);
  }

  /** Rows that could not be written wait again, as far as there is room. */
  function putBack(rows: LogRow[]): void {
    const later = waiting;
    waiting = [];
    waitingOf = new CountsByKey();
    for (const row of [...rows, ...later])
      if (hasRoom(row.env)) waiting.push(row);
      else dropped?.inc({ reason: 'room' });
  }

  async function write(rows: LogRow[]): Promise<void> {
    try {
      await insertRows(db, rows);
    } catch (error) {
      // The day has no partition yet: the clock was set, or the process slept.
      if ((error as { code?: string }).code !== '23514') throw error;
      await keepPartitions(db, clock.now());
      await insertRows(db, rows);
    }
  }

  async function writeRows(): Promise<void> {
    while (waiting.length > 0) {
      const rows = waiting.splice(0, batch);
      for (const { env } of rows) waitingOf.add(env, -1);
      try {
        await write(rows);
      } catch (error) {
        putBack(rows);
        throw error;
      }
    }
  }

  async function writeCounts(): Promise<void> {
    if (counts.size === 0) return;
    const written = counts;
    counts = new Map();
    try {
      await addActivity(db, [...written.values()]);
    } catch (error) {
      for (const { env, step, counts: lost } of written.values()) {
        const now = count(env, step);
        for (const name of activityNames) now[name] += lost[name];
      }
      throw error;
    }
  }

  async function flush(): Promise<void> {
    await writeRows();
    await writeCounts();
  }

  const parts = [
    createPeriodic(
      partitionsMs,
      logger,
      'partitions of the request log',
      async () => void (await keepPartitions(db, clock.now())),
    ),
    createPeriodic(flushMs, logger, 'request log', writeRows),
    createPeriodic(countsMs, logger, 'activity', writeCounts),
  ];
  return {
    add,
    /** A message was committed. */
    message: (env: number): void => {
      if (keep) count(env, clock.now()).messages++;
    },
    flush,
    start: (): void => {
      for (const part of parts) part.start();
    },
    stop: async (): Promise<void> => {
      for (const part of parts) await part.stop();
      await flush();
    },
  };
}

const zero = (): Counts => Object.fromEntries(activityNames.map((name) => [name, 0])) as Counts;
