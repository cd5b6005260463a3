import { ApiError } from '@parley/protocol';
import type { Ids } from '../../../platform/clock.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, firstRow, firstValue } from '../../../platform/postgres/rows.ts';

export interface Account {
  no: number;
  id: string;
  email: string;
  name: string;
  createdAt: string;
  passwordHash: string;
  totpSecret: Buffer | null;
  totpSince: string | null;
  totpStep: number | null;
  passkeys: number;
}

const columns = `a.no, a.id, a.email, a.name, a.created_at AS "createdAt", a.password_hash AS "passwordHash",
  a.totp_secret AS "totpSecret", a.totp_since AS "totpSince", a.totp_step AS "totpStep",
  (SELECT count(*)::int FROM passkeys p WHERE p.account = a.no) AS passkeys`;

/**
 * True when the password alone does not sign in, because the account has one-time codes or a passkey. A passkey can
 * also sign in alone.
 */
export const hasSecondFactor = (account: Account): boolean =>
  account.totpSince !== null || account.passkeys > 0;

/** Addresses are compared in lower case. */
export const normalEmail = (email: string): string => email.trim().toLowerCase();

export const findByEmail = (db: Queryable, email: string): Promise<Account | undefined> =>
  firstRow(db, `SELECT ${columns} FROM accounts a WHERE a.email = $1`, [normalEmail(email)]);

export async function getAccount(db: Queryable, no: number): Promise<Account> {
  const [account] = await db.query<Account>(`SELECT ${columns} FROM accounts a WHERE a.no = $1`, [no]);
  if (!account) throw new ApiError('token_invalid');
  return account;
}

/** Returns the account's number, or undefined if the address already has an account. */
export const createAccount = (
  db: Queryable,
  ids: Ids,
  fields: { email: string; name: string; passwordHash: string },
): Promise<number | undefined> =>
  firstValue(
    db,
    `INSERT INTO accounts (id, email, name, password_hash) VALUES ($1, $2, $3, $4)
     ON CONFLICT (email) DO NOTHING RETURNING no`,
    [ids.make('account'), normalEmail(fields.email), fields.name, fields.passwordHash],
  );

export const renameAccount = (db: Queryable, no: number, name: string) =>
  db.query('UPDATE accounts SET name = $2 WHERE no = $1', [no, name]);

/** Locks the account. Returns false if its password was changed since the account was read. */
export const lockUnchanged = (tx: Queryable, { no, passwordHash }: Account): Promise<boolean> =>
  anyRow(tx, 'SELECT 1 FROM accounts WHERE no = $1 AND password_hash = $2 FOR UPDATE', [no, passwordHash]);

/** Writes the hash. If `before` is given, only while the stored hash is still `before`. */
export const setPassword = (db: Queryable, account: number, passwordHash: string, before?: string) =>
  db.query(
    'UPDATE accounts SET password_hash = $2 WHERE no = $1 AND ($3::text IS NULL OR password_hash = $3)',
    [account, passwordHash, before ?? null],
  );

/** Locks the account, but not against new rows that refer to it, such as the session of somebody who signs in with a passkey. */
export const lockAccount = (tx: Queryable, no: number) =>
  tx.query('SELECT 1 FROM accounts WHERE no = $1 FOR NO KEY UPDATE', [no]);
