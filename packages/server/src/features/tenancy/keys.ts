import { secretKeyPattern } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Ids } from '../../platform/clock.ts';
import type { Vault } from '../../platform/secrets.ts';

const form = new RegExp(secretKeyPattern);

export const keyIdOf = (secretKey: string): string | undefined => form.exec(secretKey)?.[1];
export const sealContext = (keyId: string): string => `secret key ${keyId}`;

/** Keeps a key (a new one unless given) and returns it: the only time it is shown. */
export async function createKey(
  db: Queryable,
  ids: Ids,
  vault: Vault,
  env: number,
  options: { name?: string; secretKey?: string } = {},
): Promise<string> {
  const secretKey = options.secretKey ?? `sk_live_${ids.secret(16)}_${ids.secret(32)}`;
  const keyId = keyIdOf(secretKey);
  if (!keyId) throw new Error('A secret key has the form sk_live_<16 of A-Za-z0-9>_<32 of A-Za-z0-9>.');
  const rows = await db.query(
    `INSERT INTO secret_keys (id, env, name, secret) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING RETURNING 1`,
    [keyId, env, options.name ?? '', vault.seal(secretKey, sealContext(keyId))],
  );
  if (rows.length === 0) throw new Error(`There is a key with the id ${keyId} already.`);
  return secretKey;
}

export interface KeyView {
  id: string;
  name: string;
  createdAt: string;
  revokedAt: string | null;
}

export const listKeys = (db: Queryable, env: number): Promise<KeyView[]> =>
  db.query<KeyView>(
    `SELECT id, name, created_at AS "createdAt", revoked_at AS "revokedAt" FROM secret_keys WHERE env = $1 ORDER BY created_at, id`,
    [env],
  );

export async function revokeKey(db: Queryable, env: number, keyId: string): Promise<void> {
  const rows = await db.query(
    'UPDATE secret_keys SET revoked_at = coalesce(revoked_at, now()) WHERE env = $1 AND id = $2 RETURNING 1',
    [env, keyId],
  );
  if (rows.length === 0) throw new Error(`There is no key ${keyId} in this environment.`);
}
