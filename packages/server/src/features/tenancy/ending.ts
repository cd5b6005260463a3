import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { dropOfEnvironment } from '../uploads/sql.ts';

/**
 * The end of an organization. One transaction cuts everybody off: its environments are suspended, their keys revoked,
 * and nobody belongs to it. `removeEnded` then removes the rows of the environments, a few pages of a table at a time.
 */

export async function endOrganization(tx: Tx, org: number): Promise<void> {
  await tx.query(
    `UPDATE secret_keys k SET revoked_at = now() FROM environments e
     WHERE e.org = $1 AND k.env = e.no AND k.revoked_at IS NULL`,
    [org],
  );
  await tx.query(`UPDATE environments SET status = 'suspended', ended_at = now() WHERE org = $1`, [org]);
  await tx.query('DELETE FROM invitations WHERE org = $1', [org]);
  await tx.query('DELETE FROM organization_accounts WHERE org = $1', [org]);
  await tx.query(`UPDATE organizations SET name = '', deleted_at = now() WHERE no = $1`, [org]);
}

/** Seconds from the end of an environment until its rows are removed: sockets and requests have ended by then. */
const graceSeconds = 60;
const leaseSeconds = 120;
/** How many pages of 8 kB one statement looks at. */
const pagesAtOnce = 1_000;
/** How often all tables are walked for one environment; each walk finds what was written during the one before. */
const maxWalks = 5;
/** How many environments one run removes. */
const maxEnvironments = 100;

/**
 * These stay, or are removed in another way: the audit for its own time, the environment for the audit, and objects
 * that the sweep of media has yet to remove.
 */
const kept = ['audit', 'environments', 'object_removals', 'attachments'];

/**
 * Removes the rows of environments that have ended. Safe to run in several processes; what a crash interrupts is begun
 * again. What lies in a customer's own database or bucket is the customer's, and stays.
 * @returns how many environments were finished.
 */
export async function removeEnded(db: Queryable, grace = graceSeconds): Promise<number> {
  for (let done = 0; done < maxEnvironments; done++) {
    const env = await claim(db, grace);
    if (env === undefined) return done;
    await remove(db, env);
  }
  return maxEnvironments;
}

async function claim(db: Queryable, grace: number): Promise<number | undefined> {
  const [row] = await db.query<{ no: number }>(
    `UPDATE environments SET removing_until = now() + $2 * interval '1 second' WHERE no = (
       SELECT no FROM environments WHERE ended_at <= now() - $1 * interval '1 second' AND removed_at IS NULL
         AND (removing_until IS NULL OR removing_until < now()) ORDER BY no LIMIT 1 FOR UPDATE SKIP LOCKED
     ) RETURNING no`,
    [grace, leaseSeconds],
  );
  return row?.no;
}

async function remove(db: Queryable, env: number): Promise<void> {
  // Every table of tenants' data carries the environment's number, so a new table needs no line here.
  const tables = await db.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'env' AND NOT a.attisdropped
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1) ORDER BY 1`,
    [kept],
  );
  for (let walk = 0; walk < maxWalks; walk++) {
    let removed = await inPieces(db, env, 'attachments', (from, to) => dropOfEnvironment(db, env, from, to));
    for (const { name } of tables)
      removed += await inPieces(db, env, name, async (from, to) => {
        // `env + 0`: an index on env would be read as a whole for every piece.
        const [row] = await db.query<{ n: number }>(
          `WITH gone AS (DELETE FROM "${name}" WHERE env + 0 = $1 AND ctid >= $2::tid AND ctid < $3::tid RETURNING 1)
           SELECT count(*)::int AS n FROM gone`,
          [env, from, to],
        );
        return row!.n;
      });
    if (removed > 0) continue;
    await db.query('DELETE FROM object_removals WHERE env = $1 AND storage > 0', [env]);
    await db.query(`UPDATE environments SET name = '', settings = '{}', removed_at = now() WHERE no = $1`, [
      env,
    ]);
    return;
  }
}

/** Walks a table page by page, and keeps the lease meanwhile. */
async function inPieces(
  db: Queryable,
  env: number,
  table: string,
  piece: (from: string, to: string) => Promise<number>,
): Promise<number> {
  const [size] = await db.query<{ pages: number }>(
    `SELECT (pg_relation_size($1::regclass) / current_setting('block_size')::int)::int AS pages`,
    [`"${table}"`],
  );
  let removed = 0;
  for (let page = 0; page < size!.pages; page += pagesAtOnce) {
    await db.query(
      `UPDATE environments SET removing_until = now() + $2 * interval '1 second'
       WHERE no = $1 AND removing_until < now() + $2 * interval '0.5 second'`,
      [env, leaseSeconds],
    );
    removed += await piece(`(${page},0)`, `(${page + pagesAtOnce},0)`);
  }
  return removed;
}
