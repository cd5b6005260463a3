import type { Clock, Timers } from '../../platform/clock.ts';
import type { History } from '../../platform/history/port.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { leaseMs, releaseLease, renewLease } from './sql/sink.ts';

/**
 * The right of one process to work on an environment's storage. It lasts a few seconds and is renewed while the work
 * goes on, so that another process takes over soon after a crash.
 *
 * A process that is too slow may lose it without knowing. Then it confirms nothing, because each confirmation is made
 * only if the process still owns the row. A write that it had begun may reach the customer's database late, which
 * changes nothing there: records are compared by revision. An erasure has no revision, and a late write could undo it;
 * so a process that took over from one that did not let go erases nobody until such a write must have ended.
 */

const renewMs = 3_000;
export class LeaseLost extends Error {
  override name = 'LeaseLost';
  constructor() {
    super('the lease of a sink ran out before it was renewed');
  }
}

export type Lease = ReturnType<typeof keepLease>;

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
) {
  let until = askedAt + leaseMs;
  let renewing: Promise<void> | undefined;
  const renew = async (): Promise<void> => {
    const asked = clock.monotonic();
    until = (await renewLease(db, env, node)) ? asked + leaseMs : -Infinity;
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
    /** The same database, which is not written to once the lease may have run out. */
    guard: (history: History): History => ({
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
    /** Ends the lease, so that the next process need not wait for it to run out. */
    async release(): Promise<void> {
      stop();
      await renewing;
      await releaseLease(db, env, node);
    },
  };
}
