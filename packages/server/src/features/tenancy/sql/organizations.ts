import type { Queryable } from '../../../platform/postgres/db.ts';

/** What environments need to know of their organizations, which features/accounts writes. */

export async function organizationNumber(db: Queryable, id: string): Promise<number | undefined> {
  const [row] = await db.query<{ no: number }>(
    'SELECT no FROM organizations WHERE id = $1 AND deleted_at IS NULL',
    [id],
  );
  return row?.no;
}

/** The ids of the two oldest organizations. */
export async function firstOrganizations(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    'SELECT id FROM organizations WHERE deleted_at IS NULL ORDER BY no LIMIT 2',
  );
  return rows.map(({ id }) => id);
}

/** Locks the organization. Returns false if it was deleted. */
export async function lockOrganization(tx: Queryable, org: number): Promise<boolean> {
  const rows = await tx.query(
    'SELECT 1 FROM organizations WHERE no = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
    [org],
  );
  return rows.length > 0;
}
