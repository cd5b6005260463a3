import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, column, firstValue } from '../../../platform/postgres/rows.ts';

/** What environments need to know of their organizations, which features/accounts writes. */

export const organizationNumber = (db: Queryable, id: string): Promise<number | undefined> =>
  firstValue(db, 'SELECT no FROM organizations WHERE id = $1 AND deleted_at IS NULL', [id]);

/** The ids of the two oldest organizations. */
export const firstOrganizations = (db: Queryable): Promise<string[]> =>
  column(db, 'SELECT id FROM organizations WHERE deleted_at IS NULL ORDER BY no LIMIT 2');

/** Locks the organization. Returns false if it was deleted. */
export const lockOrganization = (tx: Queryable, org: number): Promise<boolean> =>
  anyRow(tx, 'SELECT 1 FROM organizations WHERE no = $1 AND deleted_at IS NULL FOR NO KEY UPDATE', [org]);
