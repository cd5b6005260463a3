import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstValue, oneValue } from '../../../platform/postgres/rows.ts';

/** Media storages that customers brought. A row never changes; its config is sealed. */

/** The number of the environment's own media storage; null if it has none. */
export async function mediaOf(db: Queryable, env: number): Promise<number | null> {
  return (await firstValue<number | null>(db, 'SELECT media FROM storage WHERE env = $1', [env])) ?? null;
}

export const findMediaStorage = (db: Queryable, env: number, no: number) =>
  firstValue<Buffer>(db, 'SELECT config FROM media_storages WHERE no = $1 AND env = $2', [no, env]);

/** Returns the number of the new storage. */
export const insertMediaStorage = (
  tx: Queryable,
  env: number,
  fields: { provider: string; sealed: Buffer; shown: unknown; at: string },
): Promise<number> =>
  oneValue(
    tx,
    'INSERT INTO media_storages (env, provider, config, shown, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING no',
    [env, fields.provider, fields.sealed, JSON.stringify(fields.shown), fields.at],
  );
