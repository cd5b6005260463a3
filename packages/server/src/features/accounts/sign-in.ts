import { ApiError } from '@parley/protocol';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import { findByEmail, hasSecondFactor, lockUnchanged, setPassword } from './sql/accounts.ts';
import type { Account } from './sql/accounts.ts';
import { useCode } from './second-factor.ts';
import type { AccountServices } from './account-services.ts';
import type { Origin } from './sql/sessions.ts';
import { countWrong, emailKey, signInCounts } from './throttle.ts';

/**
 * dashboard#sign-in: signing in takes an e-mail address and password, and a code if the account has a second
 * factor. An address without an account gets the same answer after the same work as a wrong password.
 */

export interface Given {
  password: string;
  code?: string;
}

/** Checks the credentials, and runs `then` in the transaction that uses up the code. */
export function signIn<T>(
  db: Db,
  services: AccountServices,
  given: Given & { email: string },
  { address }: Origin,
  then: (tx: Tx, account: Account) => Promise<T>,
): Promise<T> {
  const about = emailKey(services.vault, 'sign-in', given.email);
  return countWrong(services.limiter, signInCounts(about, address), async () =>
    check(db, services, await findByEmail(db, given.email), given, then),
  );
}

/**
 * Checks the password of a caller who is signed in. Wrong tries are counted per session, so that strangers cannot use
 * them up.
 */
export function confirmPassword<T>(
  db: Db,
  services: AccountServices,
  account: Account,
  session: string,
  given: Given,
  then: (tx: Tx, account: Account) => Promise<T>,
): Promise<T> {
  const counts = signInCounts(session, '').slice(1);
  return countWrong(services.limiter, counts, () => check(db, services, account, given, then));
}

async function check<T>(
  db: Db,
  services: AccountServices,
  account: Account | undefined,
  { password, code }: Given,
  then: (tx: Tx, account: Account) => Promise<T>,
): Promise<T> {
  const stored = account?.passwordHash ?? null;
  const { matches, outdated } = await services.passwords.verify(password, stored);
  if (!account || !matches) throw new ApiError('invalid_credentials');
  if (hasSecondFactor(account) && code === undefined) throw new ApiError('second_factor_required');
  const fresh = outdated ? await services.passwords.hash(password) : null;
  return db.tx(async (tx) => {
    // The password may have been changed meanwhile, which ends all sessions: the old password must not make a new one
    // after that.
    if (!(await lockUnchanged(tx, account))) throw new ApiError('invalid_credentials');
    if (hasSecondFactor(account) && !(await useCode(tx, services, account, code!)))
      throw new ApiError('invalid_credentials');
    if (fresh) await setPassword(tx, account.no, fresh, account.passwordHash);
    return then(tx, account);
  });
}
