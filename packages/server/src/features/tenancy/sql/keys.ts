import { secretKeyPattern } from '@parley/protocol';
import type { SecretKey, SecretKeyWithSecret } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstRow } from '../../../platform/postgres/rows.ts';
import type { Ids } from '../../../platform/clock.ts';
import type { Vault } from '../../../platform/secrets.ts';

const form = new RegExp(secretKeyPattern);

export const keyIdOf = (secretKey: string): string | undefined => form.exec(secretKey)?.[1];
const sealContext = (keyId: string): string => `secret key ${keyId}`;

const columns =
  'id, name, created_at AS "createdAt", last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"';

/** Stores a key (a new one unless given) and returns it, which is the only time it is shown. */
export async function insertKey(
  db: Queryable,
  { ids, vault }: { ids: Ids; vault: Vault },
  env: number,
  options: { name: string; secretKey?: string },
): Promise<SecretKeyWithSecret> {
  const secretKey = options.secretKey ?? `sk_live_${ids.secret(16)}_${ids.secret(32)}`;
  const keyId = keyIdOf(secretKey);
  if (!keyId) throw new Error('A secret key has the form sk_live_<16 of A-Za-z0-9>_<32 of A-Za-z0-9>.');
  const [row] = await db.query<SecretKey>(
    `INSERT INTO secret_keys (id, env, name, secret) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING RETURNING ${columns}`,
    [keyId, env, options.name, vault.seal(secretKey, sealContext(keyId))],
  );
  if (!row) throw new Error(`There is a key with the id ${keyId} already.`);
  return { ...row, secretKey };
}

export const openKey = (vault: Vault, keyId: string, sealed: Uint8Array): string =>
  vault.open(sealed, sealContext(keyId)).toString();

/** The keys after a place, oldest first. */
export const listKeys = (
  db: Queryable,
  env: number,
  after: [createdAt: string, id: string] | null,
  limit: number,
): Promise<SecretKey[]> =>
  db.query<SecretKey>(
    `SELECT ${columns} FROM secret_keys WHERE env = $1 AND ($2::timestamptz IS NULL OR (created_at, id) > ($2, $3))
     ORDER BY created_at, id LIMIT $4`,
    [env, after?.[0] ?? null, after?.[1] ?? null, limit],
  );

/** Returns the key as it was, and whether it was live until now; undefined if there is none. */
export async function revokeKey(
  db: Queryable,
  env: number,
  keyId: string,
): Promise<{ key: SecretKey; revokedNow: boolean } | undefined> {
  const [before] = await db.query<SecretKey>(
    `SELECT ${columns} FROM secret_keys WHERE env = $1 AND id = $2 FOR UPDATE`,
    [env, keyId],
  );
  if (!before) return undefined;
  if (before.revokedAt !== null) return { key: before, revokedNow: false };
  const [key] = await db.query<SecretKey>(
    `UPDATE secret_keys SET revoked_at = now() WHERE env = $1 AND id = $2 RETURNING ${columns}`,
    [env, keyId],
  );
  return { key: key!, revokedNow: true };
}

export interface SealedKey {
  id: string;
  secret: Buffer;
}

export const findKey = (db: Queryable, env: number, id: string): Promise<SealedKey | undefined> =>
  firstRow(db, 'SELECT id, secret FROM secret_keys WHERE env = $1 AND id = $2', [env, id]);

/** The newest key that is not revoked. */
export const newestKey = (db: Queryable, env: number): Promise<SealedKey | undefined> =>
  firstRow(
    db,
    'SELECT id, secret FROM secret_keys WHERE env = $1 AND revoked_at IS NULL ORDER BY created_at DESC LIMIT 1',
    [env],
  );

/** @param usedAt milliseconds of the last use, by key id. */
export async function markKeysUsed(db: Queryable, usedAt: ReadonlyMap<string, number>): Promise<void> {
  await db.query(
    `UPDATE secret_keys k SET last_used_at = w.at FROM unnest($1::text[], $2::timestamptz[]) AS w(id, at)
     WHERE k.id = w.id AND coalesce(k.last_used_at, '-infinity') < w.at`,
    [[...usedAt.keys()], [...usedAt.values()].map((ms) => new Date(ms))],
  );
}

/** Remembers for a day that the key's server signs tokens dated this many seconds ahead. */
export async function keepAhead(db: Queryable, env: number, keyId: string, ahead: number): Promise<void> {
  await db.query(
    `UPDATE secret_keys SET ahead = $3, ahead_at = now()
     WHERE env = $1 AND id = $2 AND (ahead < $3 OR ahead_at IS NULL OR ahead_at <= now() - interval '1 day')`,
    [env, keyId, ahead],
  );
}
