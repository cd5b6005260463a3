import type { Queryable } from '../../platform/postgres/db.ts';
import { claimEnded, markRemoved, renewClaim } from '../tenancy/sql/environments.ts';
import { dropOfEnvironments } from '../uploads/sql.ts';
import { pagesOf, removePiece, tenantTables } from './sql.ts';

/** Seconds from the end of an environment until its rows are removed: sockets and requests have ended by then. */
const graceSeconds = 60;
/** How many pages of 8 kB one statement looks at. */
const pagesAtOnce = 1_000;
/** How often all tables are walked; each walk finds what was written during the one before. */
const maxWalks = 5;
/** How many environments one run removes, in the same walks. */
const maxEnvironments = 100;

/** These stay, or are removed in another way: the audit for its own time, and the environment for the audit. */
const kept = ['audit', 'environments', 'attachments'];
/**
 * Removes the rows of environments that have ended. Safe to run in several processes; what a crash interrupts is begun
 * again. What lies in a customer's own database or bucket is the customer's, and stays.
 * @returns how many environments were finished.
 */
export async function removeEnded(db: Queryable, grace = graceSeconds): Promise<number> {
  const envs = await claimEnded(db, grace, maxEnvironments);
  return envs.length > 0 && (await remove(db, envs)) ? envs.length : 0;
}

/** Returns false if something was still being written. */
async function remove(db: Queryable, envs: number[]): Promise<boolean> {
  // Every table of tenants' data carries the environment's number, so a new table needs no line here.
  const tables = await tenantTables(db, kept);
  for (let walk = 0; walk < maxWalks; walk++) {
    let removed = await inPieces(db, envs, 'attachments', (from, to) =>
      dropOfEnvironments(db, envs, from, to),
    );
    for (const name of tables)
      removed += await inPieces(db, envs, name, (from, to) => removePiece(db, name, envs, from, to));
    if (removed > 0) continue;
    await markRemoved(db, envs);
    return true;
  }
  return false;
}

/** Walks a table page by page, and keeps the lease meanwhile. */
async function inPieces(
  db: Queryable,
  envs: number[],
  table: string,
  piece: (from: string, to: string) => Promise<number>,
): Promise<number> {
  const pages = await pagesOf(db, table);
  let removed = 0;
  for (let page = 0; page < pages; page += pagesAtOnce) {
    await renewClaim(db, envs);
    removed += await piece(`(${page},0)`, `(${page + pagesAtOnce},0)`);
  }
  return removed;
}
