import { ApiError } from '@parley/protocol';
import { createBatcher } from '../flow/batcher.ts';
import { systemTimers } from '../clock.ts';
import type { Timers } from '../clock.ts';
import type { Logger } from '../logging.ts';
import type { Db, Tx } from '../postgres/db.ts';
import { claim, finish, renew, stillOurs, untilDue } from './sql/jobs.ts';
import type { Job, FinishedJob } from './sql/jobs.ts';
import { createPeriodic } from '../flow/periodic.ts';
import type { Periodic } from '../flow/periodic.ts';

/**
 * Runs the jobs of one queue: claims as many as there are free slots, runs them, then writes their results and ends
 * them in one transaction (many jobs at a time). If that cannot be written, the job comes again when its lease ends; a
 * result that comes after another claim of the job is dropped, because that claim has, or will have, its own.
 * Leases are renewed while jobs are under way, so that a short one also serves long jobs: after a crash others go on
 * when it ends.
 */

export interface WorkerOptions<O extends { runAt: Date | null; width?: number }> {
  db: Db;
  logger: Logger;
  queue: string;
  /** How many jobs run at once in this process. */
  slots: number;
  /** Milliseconds after which others take over the jobs of a process that died. */
  leaseMs: number;
  /** Starts a batch. Each outcome arrives on its own; if one rejects, its job comes again when its lease ends. */
  run(jobs: Job[], signal: AbortSignal): Promise<Promise<O>[]>;
  /** Runs in the transaction that ends the jobs. */
  record?(tx: Tx, outcomes: O[]): Promise<void>;
  /** How many milliseconds `stop` waits before it aborts running jobs. */
  graceMs?: number;
  /** When leases are renewed. */
  timers?: Timers;
}

const pollMs = 1_000;
/** How often leases are renewed in the time of one. */
const renewals = 3;
/** Milliseconds after which a job that has not ended is left to others. */
const mostRenewedMs = 10 * 60_000;

export interface Worker extends Periodic {
  readonly active: number;
}

export function createWorker<O extends { runAt: Date | null; width?: number }>(
  options: WorkerOptions<O>,
): Worker {
  const { db, logger, queue, slots, leaseMs, graceMs = 3_000, timers = systemTimers } = options;
  const aborter = new AbortController();
  /** Jobs under way, and when each began. */
  const running = new Map<Job, number>();
  let idle: (() => void) | undefined;
  /** What was already under way when leases were renewed last: younger jobs have most of their lease left. */
  let held = new Set<Job>();
  let renewing = false;
  let stopRenewing: (() => void) | undefined;

  const { add: finishJob } = createBatcher<{ job: Job; outcome: O }, void>({
    maxBatch: 500,
    maxWaiting: slots,
    badItem: (error) => !(error instanceof ApiError),
    run: async (items) => {
      await db.tx(async (tx) => {
        const ours = await stillOurs(
          tx,
          items.map((i) => i.job),
        );
        const ended = items.filter(({ job }) => ours.has(job.no));
        if (ended.length === 0) return;
        await options.record?.(
          tx,
          ended.map((i) => i.outcome),
        );
        await finish(
          tx,
          queue,
          ended.map(({ job, outcome }): FinishedJob => ({ ...outcome, job })),
        );
      });
      return items.map(() => undefined);
    },
  });

  async function runOne(job: Job, outcome: Promise<O>): Promise<void> {
    try {
      await finishJob({ job, outcome: await outcome });
    } catch (error) {
      logger.warn({ err: error, queue, job: job.no }, 'a job could not be ended; it will run again');
    } finally {
      running.delete(job);
      if (running.size === 0) idle?.();
      loop.wake();
    }
  }

  async function renewLeases(): Promise<void> {
    if (renewing) return;
    const oldest = timers.monotonic() - mostRenewedMs;
    const long = [...running].filter(([job, since]) => held.has(job) && since > oldest).map(([job]) => job);
    held = new Set(running.keys());
    if (long.length === 0) return;
    renewing = true;
    try {
      await renew(db, long, leaseMs);
    } catch (error) {
      logger.warn({ err: error, queue, jobs: long.length }, 'leases were not renewed');
    } finally {
      renewing = false;
    }
  }

  async function runBatch(jobs: Job[]): Promise<void> {
    let outcomes: Promise<O>[];
    try {
      outcomes = await options.run(jobs, aborter.signal);
    } catch (error) {
      // One bad job must not hold up the others of its batch.
      logger.warn({ err: error, queue, jobs: jobs.length }, 'a batch of jobs could not begin');
      outcomes = jobs.map(async (job) => (await options.run([job], aborter.signal))[0]!);
    }
    await Promise.all(jobs.map((job, i) => runOne(job, outcomes[i]!)));
  }

  const loop = createPeriodic(pollMs, logger, queue, turn, { rests: true });
  async function turn(): Promise<number | null> {
    const free = slots - running.size;
    if (free === 0) return null;
    const jobs = await claim(db, queue, free, leaseMs);
    if (jobs.length > 0) {
      for (const job of jobs) running.set(job, timers.monotonic());
      void runBatch(jobs);
    }
    return jobs.length === free ? null : untilDue(db, queue, pollMs);
  }

  return {
    get active() {
      return running.size;
    },
    start: () => {
      stopRenewing ??= timers.every(leaseMs / renewals, () => void renewLeases());
      loop.start();
    },
    wake: () => loop.wake(),
    stop: async () => {
      await loop.stop();
      if (running.size > 0) {
        const timer = setTimeout(() => aborter.abort(new Error('shutting down')), graceMs);
        await new Promise<void>((resolve) => (idle = resolve));
        clearTimeout(timer);
      }
      stopRenewing?.();
    },
  };
}
