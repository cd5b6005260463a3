import type { Queryable } from '../../postgres/db.ts';
import { arraysOf, oneValue } from '../../postgres/rows.ts';

/**
 * Jobs in PostgreSQL (jobs.sql): a job is a row written in the transaction of its cause, and claimed with a lease
 * by one of several workers. Jobs with the same key form a lane, which bounds how many of them run at once. worker.ts
 * runs them.
 */

/**
 * Settings for the connections of workers. Their commits do not wait for the disk, so that senders of messages do not
 * wait behind them. A crash of PostgreSQL may undo the last half second of their work, which they then repeat.
 */
export const workSettings = { synchronous_commit: 'off' };

export interface Job {
  no: number;
  key: number;
  /** How often it was claimed, this time included. It also proves that a claim is still ours. */
  claims: number;
  ref: number | null;
  data: unknown;
}

export interface NewJob {
  key: number;
  ref?: number;
  data?: unknown;
}

export interface FinishedJob {
  job: Job;
  /** When it runs again; null if it is done. */
  runAt: Date | null;
  /**
   * How many jobs the lane may run at once, as far as this job can tell. The lane's width grows towards it by one per
   * job, and shrinks to it at once.
   */
  width?: number;
}

export async function enqueue(
  db: Queryable,
  queue: { name: string; width: number },
  jobs: readonly NewJob[],
  runAt?: Date,
): Promise<void> {
  if (jobs.length === 0) return;
  await db.query('SELECT enqueue_jobs($1, $2, $3, $4, $5, coalesce($6::timestamptz, clock_timestamp()))', [
    queue.name,
    queue.width,
    jobs.map((j) => j.key),
    jobs.map((j) => j.ref ?? null),
    jobs.map((j) => (j.data === undefined ? null : JSON.stringify(j.data))),
    runAt ?? null,
  ]);
}

export const claim = (db: Queryable, queue: string, max: number, leaseMs: number): Promise<Job[]> =>
  db.query<Job>('SELECT no, key, claims, ref, data FROM claim_jobs($1, $2, $3)', [queue, max, leaseMs]);

/** Prolongs the leases of claims that are still ours. */
export async function renew(db: Queryable, jobs: readonly Job[], leaseMs: number): Promise<void> {
  await db.query('SELECT renew_jobs($1, $2, $3)', [...arraysOf(jobs, 'no', 'claims'), leaseMs]);
}

/** Those of these claims that are still ours, by the numbers of their jobs; nobody takes one before the transaction ends. */
export async function stillOurs(tx: Queryable, jobs: readonly Job[]): Promise<Set<number>> {
  const rows = await tx.query<{ no: number }>(
    `SELECT j.no FROM unnest($1::bigint[], $2::int[]) u(no, claims)
     CROSS JOIN LATERAL (SELECT no FROM jobs WHERE no = u.no AND claims = u.claims LIMIT 1 FOR UPDATE) j`,
    arraysOf(jobs, 'no', 'claims'),
  );
  return new Set(rows.map(({ no }) => no));
}

export async function finish(db: Queryable, queue: string, finished: readonly FinishedJob[]): Promise<void> {
  await db.query('SELECT finish_jobs($1, $2, $3, $4, $5, $6)', [
    queue,
    finished.map((s) => s.job.no),
    finished.map((s) => s.job.key),
    finished.map((s) => s.job.claims),
    finished.map((s) => s.runAt),
    finished.map((s) => s.width ?? null),
  ]);
}

/** Milliseconds until the queue has something to claim, at most `most`. */
export async function untilDue(db: Queryable, queue: string, most: number): Promise<number> {
  const [row] = await db.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM next_at - clock_timestamp()) * 1000)::float8 AS ms FROM job_lanes
     WHERE queue = $1 AND next_at < clock_timestamp() + $2 * interval '1 millisecond' ORDER BY next_at LIMIT 1`,
    [queue, most],
  );
  return Math.max(1, row?.ms ?? most);
}

/** The number of jobs waiting or running, counted up to 100,000. */
export const depth = (db: Queryable, queue: string): Promise<number> =>
  oneValue(db, 'SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE queue = $1 LIMIT 100000) x', [queue]);

/** Removes lanes that have had no job for a while. Until then they are kept for their width. */
export async function removeEmptyLanes(db: Queryable): Promise<void> {
  await db.query(
    `WITH empty AS MATERIALIZED (
       SELECT queue, key FROM job_lanes WHERE next_at = 'infinity' AND served_at < now() - interval '1 hour'
       LIMIT 10000 FOR UPDATE SKIP LOCKED
     ) DELETE FROM job_lanes l USING empty e WHERE l.queue = e.queue AND l.key = e.key`,
  );
}

/** Wakes the workers of other processes (../wake.ts). */
export async function notifyWorkers(db: Queryable, channel: string, subject: string): Promise<void> {
  await db.query('SELECT pg_notify($1, $2)', [channel, subject]);
}
