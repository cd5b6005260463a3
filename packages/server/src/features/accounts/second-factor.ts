import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Account } from './sql/accounts.ts';
import type { AccountServices } from './services.ts';
import { makeRecoveryCodes, recoveryCodeHash } from './tokens.ts';
import { base32, matchingStep, otpauthUri, secretBytes } from './totp.ts';

/** One-time codes of an authenticator app, and the recovery codes for when it is lost. */

const sealContext = (account: number): string => `one-time codes of account ${account}`;
const openSecret = (vault: Vault, account: Account): Buffer | null =>
  account.totpSecret && vault.open(account.totpSecret, sealContext(account.no));

/**
 * Whether the code that was typed at sign-in is a valid second factor. It uses the code up, so run it in the
 * transaction that signs in.
 */
export async function useCode(
  tx: Queryable,
  { vault, clock }: AccountServices,
  account: Account,
  code: string,
): Promise<boolean> {
  const secret = account.totpSince === null ? null : openSecret(vault, account);
  const step = secret && matchingStep(secret, code.replaceAll(' ', ''), clock.now(), account.totpStep);
  if (step !== null) return useStep(tx, account.no, step);
  const hash = recoveryCodeHash(code);
  if (!hash) return false;
  const rows = await tx.query('DELETE FROM recovery_codes WHERE account = $1 AND code = $2 RETURNING 1', [
    account.no,
    hash,
  ]);
  return rows.length > 0;
}

/** Marks the time step as used. Returns false if another request has used this step or a later one meanwhile. */
async function useStep(tx: Queryable, account: number, step: number): Promise<boolean> {
  const rows = await tx.query(
    'UPDATE accounts SET totp_step = $2 WHERE no = $1 AND coalesce(totp_step, -1) < $2 RETURNING 1',
    [account, step],
  );
  return rows.length > 0;
}

/** Makes a secret, which counts only after `confirmTotp` has seen a code made with it. Refused while one-time codes are on. */
export async function beginTotp(
  db: Queryable,
  { vault, ids }: AccountServices,
  account: Account,
): Promise<{ secret: string; uri: string }> {
  const secret = Buffer.from(ids.random(secretBytes));
  const rows = await db.query(
    'UPDATE accounts SET totp_secret = $2, totp_step = NULL WHERE no = $1 AND totp_since IS NULL RETURNING 1',
    [account.no, vault.seal(secret, sealContext(account.no))],
  );
  if (rows.length === 0)
    throw new ApiError('invalid_request', { message: 'One-time codes are on already: turn them off first.' });
  return { secret: base32(secret), uri: otpauthUri(secret, account.email) };
}

export async function confirmTotp(
  tx: Queryable,
  { vault, clock }: AccountServices,
  account: Account,
  code: string,
): Promise<void> {
  const secret = account.totpSince === null ? openSecret(vault, account) : null;
  const step = secret && matchingStep(secret, code.replaceAll(' ', ''), clock.now(), account.totpStep);
  if (step === null)
    throw new ApiError('invalid_request', { param: 'code', message: 'The code is not the current one.' });
  await tx.query('UPDATE accounts SET totp_since = $2, totp_step = $3 WHERE no = $1', [
    account.no,
    new Date(clock.now()),
    step,
  ]);
}

/** Returns true if the account had one-time codes. */
export async function removeTotp(tx: Queryable, account: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE accounts SET totp_secret = NULL, totp_since = NULL, totp_step = NULL
     WHERE no = $1 AND totp_since IS NOT NULL RETURNING 1`,
    [account],
  );
  return rows.length > 0;
}

/** Replaces the account's recovery codes and returns the new ones, which cannot be read again. */
export async function renewRecoveryCodes(
  tx: Queryable,
  { ids }: AccountServices,
  account: number,
): Promise<string[]> {
  const codes = makeRecoveryCodes(ids.random);
  await removeRecoveryCodes(tx, account);
  await tx.query('INSERT INTO recovery_codes (account, code) SELECT $1, unnest($2::bytea[])', [
    account,
    codes.map((code) => recoveryCodeHash(code)),
  ]);
  return codes;
}

export async function removeRecoveryCodes(tx: Queryable, account: number): Promise<void> {
  await tx.query('DELETE FROM recovery_codes WHERE account = $1', [account]);
}

export async function countRecoveryCodes(db: Queryable, account: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM recovery_codes WHERE account = $1',
    [account],
  );
  return row!.n;
}
