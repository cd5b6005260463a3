import { ApiError } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Account } from './sql/accounts.ts';
import type { AccountServices } from './account-services.ts';
import { makeRecoveryCodes, recoveryCodeHash } from './tokens.ts';
import { base32, matchingStep, otpauthUri, secretBytes } from './totp.ts';
import {
  keepTotpSecret,
  replaceRecoveryCodes,
  turnTotpOn,
  useRecoveryCode,
  useStep,
} from './sql/second-factor.ts';

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
  return useRecoveryCode(tx, account.no, hash);
}

/** Makes a secret, which counts only after `confirmTotp` has seen a code made with it. Refused while one-time codes are on. */
export async function beginTotp(
  db: Queryable,
  { vault, ids }: AccountServices,
  account: Account,
): Promise<{ secret: string; uri: string }> {
  const secret = Buffer.from(ids.random(secretBytes));
  if (!(await keepTotpSecret(db, account.no, vault.seal(secret, sealContext(account.no)))))
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
  if (step === null) throw invalid('code', 'The code is not the current one.');
  await turnTotpOn(tx, account.no, new Date(clock.now()), step);
}

/** Replaces the account's recovery codes and returns the new ones, which cannot be read again. */
export async function renewRecoveryCodes(
  tx: Queryable,
  { ids }: AccountServices,
  account: number,
): Promise<string[]> {
  const codes = makeRecoveryCodes(ids.random);
  await replaceRecoveryCodes(
    tx,
    account,
    codes.map((code) => recoveryCodeHash(code)),
  );
  return codes;
}
