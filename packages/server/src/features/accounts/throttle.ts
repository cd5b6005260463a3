import { ApiError, rateLimits } from '@parley/protocol';
import type { LongWindowLimit } from '@parley/protocol';
import { networkOf } from '../../platform/address.ts';
import type { LimitKey, RateLimiter } from '../../platform/rate-limit/port.ts';
import type { Vault } from '../../platform/secrets.ts';
import { normalEmail } from './sql/accounts.ts';

export interface Count {
  key: LimitKey;
  limit: LongWindowLimit;
}

/** What strangers try. Each is counted apart, so that who uses one up does not lock the others. */
type Tried = 'accept' | 'forgot' | 'reset' | 'sign-in' | 'sign-up';

export const ofAddress = (what: Tried, address: string): Count => ({
  key: { what: `tried ${what}`, of: networkOf(address) },
  limit: rateLimits.signInAddress,
});

/** A keyed hash, so that no e-mail addresses are stored in Redis. */
export const emailKey = (vault: Vault, what: string, email: string): string =>
  vault.mac(`${what} ${normalEmail(email)}`).toString('base64url');

export const mailCount = (vault: Vault, what: 'reset' | 'sign-up', email: string): Count => ({
  key: { what: 'mail', of: emailKey(vault, what, email) },
  limit: rateLimits.mailsToAddress,
});

export const signInCounts = (account: string, address: string): Count[] => [
  ofAddress('sign-in', address),
  { key: { what: 'signIn', of: account }, limit: rateLimits.signInAccount },
];

/** Counts one use of each; if one of them is exhausted, none is counted and `rate_limited` is thrown. */
export async function countUse(limiter: RateLimiter, counts: readonly Count[]): Promise<void> {
  // One after the other, because the keys may live on different nodes of a Redis cluster.
  for (const [i, count] of counts.entries()) {
    const [verdict] = await limiter.take([count]);
    if (verdict!.allowed) continue;
    await limiter.giveBack(counts.slice(0, i));
    throw new ApiError('rate_limited', {
      message: 'Too many attempts. Wait a few minutes.',
      retryAfterMs: verdict!.retryAfterMs,
    });
  }
}

/**
 * Counts a try before it runs, so that a thousand tries at once get no further than ten one after the other. After any
 * other outcome than wrong credentials the try is given back.
 */
export async function countWrong<T>(
  limiter: RateLimiter,
  counts: readonly Count[],
  run: () => Promise<T>,
): Promise<T> {
  await countUse(limiter, counts);
  let wrong = false;
  try {
    return await run();
  } catch (error) {
    wrong = error instanceof ApiError && error.code === 'invalid_credentials';
    throw error;
  } finally {
    if (!wrong) await limiter.giveBack(counts);
  }
}
