import type { Output } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, firstRow, valuesOf } from '../../../platform/postgres/rows.ts';

/** Passkeys of accounts, and the challenges that were used. */

export const maxPasskeys = 20;

export type Passkey = Output<'account.listPasskeys'>['data'][number];

interface StoredPasskey extends Passkey {
  account: number;
  credential: Buffer;
  publicKey: Buffer;
  signCount: number;
  transports: string[];
}

const viewColumns = 'id, name, created_at AS "createdAt", used_at AS "lastUsedAt"';
const columns = `${viewColumns}, account, credential, public_key AS "publicKey", sign_count AS "signCount", transports`;

export const storedPasskeys = (db: Queryable, account: number): Promise<StoredPasskey[]> =>
  db.query<StoredPasskey>(
    `SELECT ${columns} FROM passkeys WHERE account = $1 ORDER BY created_at, id LIMIT ${maxPasskeys}`,
    [account],
  );

export const listPasskeys = (db: Queryable, account: number): Promise<Passkey[]> =>
  db.query<Passkey>(
    `SELECT ${viewColumns} FROM passkeys WHERE account = $1 ORDER BY created_at, id LIMIT ${maxPasskeys}`,
    [account],
  );

/** Returns undefined if the credential is known already. */
export const insertPasskey = (
  tx: Queryable,
  passkey: Omit<StoredPasskey, 'createdAt' | 'lastUsedAt'> & { createdAt: Date },
): Promise<Passkey | undefined> =>
  firstRow(
    tx,
    `INSERT INTO passkeys (id, account, credential, public_key, sign_count, transports, name, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (credential) DO NOTHING RETURNING ${viewColumns}`,
    [
      ...valuesOf(passkey, 'id', 'account', 'credential', 'publicKey', 'signCount', 'transports', 'name'),
      passkey.createdAt,
    ],
  );

/** The passkey of this credential, with the id of its account as `owner`. */
export const findPasskey = (tx: Queryable, credential: Buffer) =>
  firstRow<StoredPasskey & { owner: string }>(
    tx,
    `SELECT ${columns}, (SELECT a.id FROM accounts a WHERE a.no = account) AS owner FROM passkeys WHERE credential = $1`,
    [credential],
  );

/** Returns false if the passkey was removed meanwhile. */
export const markPasskeyUsed = (tx: Queryable, id: string, signCount: number, at: Date): Promise<boolean> =>
  anyRow(tx, 'UPDATE passkeys SET sign_count = $2, used_at = $3 WHERE id = $1 RETURNING 1', [
    id,
    signCount,
    at,
  ]);

/** Returns true if the account had this passkey. */
export const removePasskey = (tx: Queryable, account: number, id: string): Promise<boolean> =>
  anyRow(tx, 'DELETE FROM passkeys WHERE account = $1 AND id = $2 RETURNING 1', [account, id]);

export const removePasskeys = (tx: Queryable, account: number) =>
  tx.query('DELETE FROM passkeys WHERE account = $1', [account]);

/** Returns false if the challenge was used before. */
export const keepChallenge = (tx: Queryable, challenge: Buffer, expiresAt: Date): Promise<boolean> =>
  anyRow(
    tx,
    'INSERT INTO passkey_challenges (challenge, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1',
    [challenge, expiresAt],
  );
