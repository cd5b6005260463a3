import type { Clock, Timers } from '../../platform/clock.ts';
import type { History } from '../../platform/history/port.ts';
import type { Queryable } from '../../platform/postgres/db.ts';

/**
 * The right of one process to work on an environment's storage. It lasts a few seconds and is renewed while the work
 * goes on, so that another process takes over soon after a crash.
 *
 * A process that is too slow may lose it without knowing. Then it confirms nothing, because each confirmation is made
 * only if the process still owns the row. A write that it had begun may reach the customer's database late, which
 * changes nothing there: records are compared by revision. An erasure has no revision, and a late write could undo it;
 * so a process that took over from one that did not let go erases nobody until such a write must have ended.
 */

const leaseMs = 10_000;
const renewMs = 3_000;
/** SQL for how long a write can last: a connection and a transaction with several statements, each with its time-out. */
const lastWrite = `interval '60 seconds'`;

/** SQL that takes the lease for the process `$2`, or extends it. */
export const takeLease = `owner = $2, owned_until = clock_timestamp() + interval '${leaseMs} milliseconds',
  taken_at = CASE WHEN s.owner = $2 OR s.owned_until = '-infinity' THEN s.taken_at ELSE clock_timestamp() END`;
/** SQL that is false while a late write of the process before could still undo an erasure. */
export const mayErase = `s.taken_at < clock_timestamp() - ${lastWrite}`;

export class LeaseLost extends Error {
  override name = 'LeaseLost';
  constructor() {
    super('the lease of a sink ran out before it was renewed');
  }
}

export interface Lease {
  /** The same database, which is not written to once the lease may have run out. */
  guard(history: History): History;
  /** Lets go, so that whoever is next need not wait. */
  release(): Promise<void>;
}

/** Renews a lease that was asked for at `askedAt` (monotonic). */
export function keepLease(
  {
    db,
    clock,
    timers,
    node,
  }: { db: Queryable; clock: Pick<Clock, 'monotonic'>; timers: Timers; node: string },
  env: number,
  askedAt: number,
): Lease {
  let until = askedAt + leaseMs;
  let renewing: Promise<void> | undefined;
  const renew = async (): Promise<void> => {
    const asked = clock.monotonic();
    const rows = await db.query(
      `UPDATE storage SET owned_until = clock_timestamp() + interval '${leaseMs} milliseconds' WHERE env = $1 AND owner = $2 RETURNING env`,
      [env, node],
    );
    until = rows.length > 0 ? asked + leaseMs : -Infinity;
  };
  const stop = timers.every(renewMs, () => {
    // If it fails, the lease runs out at its time, unless a later try succeeds.
    renewing ??= renew()
      .catch(() => undefined)
      .finally(() => (renewing = undefined));
  });
  const check = (): void => {
    if (clock.monotonic() >= until) throw new LeaseLost();
  };
  return {
    guard: (history) => ({
      ...history,
      async write(records, options) {
        check();
        await history.write(records, options);
      },
      async erase(erasure) {
        check();
        await history.erase(erasure);
      },
    }),
    async release() {
      stop();
      await renewing;
      await db.query(`UPDATE storage SET owned_until = '-infinity' WHERE env = $1 AND owner = $2`, [
        env,
        node,
      ]);
    },
  };
}
