import type { Queryable } from '../../../platform/postgres/db.ts';

/** The row that only the right master key opens; undefined in a new store. */
export async function masterKeyCheck(db: Queryable): Promise<Buffer | undefined> {
  const [row] = await db.query<{ sealed: Buffer }>('SELECT sealed FROM master_key_check');
  return row?.sealed;
}

/** Stores the row, unless there is one. */
export async function keepMasterKeyCheck(db: Queryable, sealed: Buffer): Promise<void> {
  await db.query('INSERT INTO master_key_check (sealed) VALUES ($1) ON CONFLICT DO NOTHING', [sealed]);
}
