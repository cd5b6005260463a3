import { limits } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';

/** Secrets that sign what is sent to a customer's server: the present one, and those before it for the rotation window. */

/** How many secrets are live at once; a further rotation ends the oldest early. */
const maxSecrets = 5;

interface LiveSecret {
  owner: number;
  /** Sealed. */
  secret: Buffer;
  /** null: it is the present one. */
  expiresAt: string | null;
}

/** @param owner the column that names whose secret it is. */
export const signingSecrets = (table: string, owner: string) => ({
  /** Makes the new secret the current one; earlier secrets stay valid for the rotation window. */
  async add(db: Queryable, of: number, sealed: Buffer): Promise<void> {
    await db.query(
      `UPDATE ${table} SET expires_at = now() + interval '${limits.webhookRotationHours} hours'
       WHERE ${owner} = $1 AND expires_at IS NULL`,
      [of],
    );
    await db.query(`INSERT INTO ${table} (${owner}, secret) VALUES ($1, $2)`, [of, sealed]);
    await db.query(
      `DELETE FROM ${table} WHERE ${owner} = $1 AND (expires_at < now() OR no NOT IN (
         SELECT no FROM ${table} WHERE ${owner} = $1 ORDER BY no DESC LIMIT ${maxSecrets}))`,
      [of],
    );
  },

  /** Those that are valid now, newest first. */
  live: (db: Queryable, of: readonly number[]): Promise<LiveSecret[]> =>
    db.query<LiveSecret>(
      `SELECT ${owner} AS owner, secret, expires_at AS "expiresAt" FROM ${table}
       WHERE ${owner} = ANY($1) AND (expires_at IS NULL OR expires_at > now()) ORDER BY no DESC`,
      [of],
    ),
});
