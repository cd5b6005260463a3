import type { Tx } from '../../platform/postgres/db.ts';

/**
 * The end of an organization. One transaction cuts everybody off: its environments are suspended, their keys revoked,
 * and nobody belongs to it. `removeEnded` (features/retention) then removes the rows of the environments.
 */

export async function endOrganization(tx: Tx, org: number): Promise<void> {
  const ended = await tx.query<{ no: number }>(
    `UPDATE environments SET status = 'suspended', ended_at = now() WHERE org = $1 RETURNING no`,
    [org],
  );
  await tx.query('UPDATE secret_keys SET revoked_at = now() WHERE env = ANY($1) AND revoked_at IS NULL', [
    ended.map(({ no }) => no),
  ]);
  await tx.query('DELETE FROM invitations WHERE org = $1', [org]);
  await tx.query('DELETE FROM organization_accounts WHERE org = $1', [org]);
  await tx.query(`UPDATE organizations SET name = '', deleted_at = now() WHERE no = $1`, [org]);
}
