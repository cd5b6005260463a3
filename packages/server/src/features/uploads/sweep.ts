import type { Queryable } from '../../platform/postgres/db.ts';
import * as sql from './sql.ts';
import type { Removal } from './sql.ts';

const batch = 50;
const atOnce = 10;
const maxBatches = 100;
/** How often a removal is tried: with up to 6 hours in between, for more than a week. */
const maxAttempts = 40;

/** Deletes uploads past their time, then removes objects that nothing refers to. Safe to run in several processes. */
export async function sweepMedia(
  db: Queryable,
  remove: (removal: Removal) => Promise<void>,
  onGivenUp: (removal: Removal, error: unknown) => void,
): Promise<{ expired: number; removed: number; failed: number }> {
  const done = { expired: 0, removed: 0, failed: 0 };
  for (let i = 0; i < maxBatches; i++) {
    const dropped = await sql.dropExpired(db, batch);
    done.expired += dropped;
    if (dropped < batch) break;
  }
  for (let i = 0; i < maxBatches; i++) {
    const due = await sql.claimRemovals(db, batch, maxAttempts);
    const finished: number[] = [];
    for (let at = 0; at < due.length; at += atOnce)
      await Promise.all(due.slice(at, at + atOnce).map((removal) => attempt(removal, finished)));
    if (finished.length > 0) await sql.finishRemovals(db, finished);
    done.removed += finished.length;
    done.failed += due.length - finished.length;
    // If the storage refuses everything, it is left alone until the next sweep.
    if (due.length < batch || finished.length === 0) break;
  }
  return done;

  async function attempt(removal: Removal, finished: number[]): Promise<void> {
    try {
      await remove(removal);
      finished.push(removal.no);
    } catch (error) {
      if (removal.attempts >= maxAttempts) onGivenUp(removal, error);
    }
  }
}
