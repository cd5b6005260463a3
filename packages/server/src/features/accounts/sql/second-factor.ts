import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, oneValue } from '../../../platform/postgres/rows.ts';

/** One-time codes of accounts, and their recovery codes, which are kept hashed. */

/** Marks the time step as used. Returns false if another request has used this step or a later one meanwhile. */
export const useStep = (tx: Queryable, account: number, step: number): Promise<boolean> =>
  anyRow(
    tx,
    'UPDATE accounts SET totp_step = $2 WHERE no = $1 AND coalesce(totp_step, -1) < $2 RETURNING 1',
    [account, step],
  );

/** Returns false if the account has one-time codes already. */
export const keepTotpSecret = (db: Queryable, account: number, sealed: Buffer): Promise<boolean> =>
  anyRow(
    db,
    'UPDATE accounts SET totp_secret = $2, totp_step = NULL WHERE no = $1 AND totp_since IS NULL RETURNING 1',
    [account, sealed],
  );

export const turnTotpOn = (tx: Queryable, account: number, since: Date, step: number) =>
  tx.query('UPDATE accounts SET totp_since = $2, totp_step = $3 WHERE no = $1', [account, since, step]);

/** Returns true if the account had one-time codes. */
export const removeTotp = (tx: Queryable, account: number): Promise<boolean> =>
  anyRow(
    tx,
    `UPDATE accounts SET totp_secret = NULL, totp_since = NULL, totp_step = NULL
     WHERE no = $1 AND totp_since IS NOT NULL RETURNING 1`,
    [account],
  );

/** Returns true if the account had this code, which is now used up. */
export const useRecoveryCode = (tx: Queryable, account: number, hash: Buffer): Promise<boolean> =>
  anyRow(tx, 'DELETE FROM recovery_codes WHERE account = $1 AND code = $2 RETURNING 1', [account, hash]);

export async function replaceRecoveryCodes(
  tx: Queryable,
  account: number,
  hashes: readonly (Buffer | null)[],
): Promise<void> {
  await removeRecoveryCodes(tx, account);
  await tx.query('INSERT INTO recovery_codes (account, code) SELECT $1, unnest($2::bytea[])', [
    account,
    hashes,
  ]);
}

export const removeRecoveryCodes = (tx: Queryable, account: number) =>
  tx.query('DELETE FROM recovery_codes WHERE account = $1', [account]);

export const countRecoveryCodes = (db: Queryable, account: number): Promise<number> =>
  oneValue(db, 'SELECT count(*)::int AS n FROM recovery_codes WHERE account = $1', [account]);
