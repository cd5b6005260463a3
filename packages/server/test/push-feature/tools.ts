import { setTimeout as delay } from 'node:timers/promises';
import type { PgDb } from '../../src/platform/postgres/db.ts';

const queues = ['push_plan', 'push_lost', 'push'];

export interface WaitingJob {
  queue: string;
  claims: number;
  /** When it runs, in milliseconds since the epoch. */
  at: number;
}

export const jobs = (db: PgDb, queue: string): Promise<WaitingJob[]> =>
  db.query<WaitingJob>(
    `SELECT queue, claims, (extract(epoch FROM run_at) * 1000)::float8 AS at FROM jobs WHERE queue = $1`,
    [queue],
  );

/** Asks again until it holds; only a test that would hang reaches the end. */
export async function until(holds: () => Promise<boolean> | boolean, what: string): Promise<void> {
  for (const end = Date.now() + 120_000; !(await holds()); await delay(30))
    if (Date.now() > end) throw new Error(`waited for ${what}`);
}

/** Whatever would be pushed by now was: nothing is noted, planned or under way, except for later. */
export const settled = (db: PgDb): Promise<void> =>
  until(async () => {
    const [row] = await db.query<{ n: number }>(
      `SELECT (SELECT count(*) FROM outbox WHERE due_at <= clock_timestamp())
         + (SELECT count(*) FROM jobs WHERE queue = ANY($1) AND (leased OR run_at <= clock_timestamp())) AS n`,
      [queues],
    );
    return row!.n === 0;
  }, 'the queues of push');

export const listensForPush = async (db: PgDb, envId: string): Promise<boolean> =>
  (
    await db.query<{ on: boolean }>('SELECT listeners & 2 <> 0 AS on FROM environments WHERE id = $1', [
      envId,
    ])
  )[0]!.on;

export async function pushesCounted(db: PgDb, envId: string): Promise<number> {
  await db.query('SELECT count_notes(1000000)');
  const [row] = await db.query<{ n: number }>(
    `SELECT coalesce(sum((c.counts ->> 'pushSent')::int), 0)::int AS n FROM counters c JOIN environments e ON e.no = c.env
     WHERE e.id = $1 AND c.step = 1`,
    [envId],
  );
  return row!.n;
}
