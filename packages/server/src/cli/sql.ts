import type { Queryable } from '../platform/postgres/db.ts';

/** True if a service has started on this database. */
export async function storeExists(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>(
    `SELECT to_regclass('schema_migrations') IS NOT NULL AS found`,
  );
  return row!.found;
}
