import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import type { AccountServices } from '../account-services.ts';
import { hashToken, makeToken, tokenForm } from '../tokens.ts';

/**
 * A reset of a forgotten password is a link that works once, within an hour. Asking again, or changing the password,
 * makes the earlier link invalid.
 */

const validMs = 3_600_000;

export async function beginReset(
  tx: Queryable,
  { clock, ids }: Pick<AccountServices, 'clock' | 'ids'>,
  account: number,
): Promise<{ token: string; expiresAt: string }> {
  const token = makeToken(ids.random);
  const expiresAt = new Date(clock.now() + validMs);
  await tx.query(
    `INSERT INTO password_resets (account, token, expires_at) VALUES ($1, $2, $3)
     ON CONFLICT (account) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at`,
    [account, hashToken(token), expiresAt],
  );
  return { token, expiresAt: expiresAt.toISOString() };
}

const gone = () =>
  new ApiError('not_found', { message: 'The link was used, replaced or is older than an hour.' });

/** Finds the account whose password the token resets, without using the token up. */
export async function openReset(
  db: Queryable,
  { clock }: Pick<AccountServices, 'clock'>,
  token: string,
): Promise<number> {
  const [row] = tokenForm.test(token)
    ? await db.query<{ account: number }>(
        'SELECT account FROM password_resets WHERE token = $1 AND expires_at > $2',
        [hashToken(token), new Date(clock.now())],
      )
    : [];
  if (!row) throw gone();
  return row.account;
}

/** Uses up a token that `openReset` accepted: of two requests with the same token, the second is refused. */
export async function useReset(tx: Queryable, token: string): Promise<void> {
  const rows = await tx.query('DELETE FROM password_resets WHERE token = $1 RETURNING 1', [hashToken(token)]);
  if (rows.length === 0) throw gone();
}

export const dropReset = (tx: Queryable, account: number) =>
  tx.query('DELETE FROM password_resets WHERE account = $1', [account]);
