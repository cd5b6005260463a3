import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, firstValue } from '../../../platform/postgres/rows.ts';

/** The row that only the right master key opens; undefined in a new store. */
export const masterKeyCheck = (db: Queryable): Promise<Buffer | undefined> =>
  firstValue(db, 'SELECT sealed FROM master_key_check');

/** Stores the row, unless there is one. */
export const keepMasterKeyCheck = (db: Queryable, sealed: Buffer) =>
  db.query('INSERT INTO master_key_check (sealed) VALUES ($1) ON CONFLICT DO NOTHING', [sealed]);

/** Replaces the row, unless somebody else has done so; false then. */
export const replaceMasterKeyCheck = (db: Queryable, from: Buffer, to: Buffer): Promise<boolean> =>
  anyRow(db, 'UPDATE master_key_check SET sealed = $2 WHERE sealed = $1 RETURNING 1', [from, to]);
