import { ApiError, rateLimits } from '@parley/protocol';
import type { LongWindowLimit } from '@parley/protocol';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';

export interface Count {
  /** One letter for what is counted, then about whom. */
  key: string;
  limit: LongWindowLimit;
}

export const signInCounts = (account: string, address: string): Count[] => [
  { key: `w${address}`, limit: rateLimits.signInAddress },
  { key: `x${account}`, limit: rateLimits.signInAccount },
];

/** Counts one use of each; where one of them is used up, none is counted. */
export async function countUse(limiter: RateLimiter, counts: readonly Count[]): Promise<void> {
  // One by one: they may live on different nodes of a cluster.
  for (const [i, count] of counts.entries()) {
    const [verdict] = await limiter.take([count]);
    if (verdict!.allowed) continue;
    await limiter.giveBack(counts.slice(0, i));
    throw new ApiError('rate_limited', {
      message: 'Too many tries: wait a while.',
      retryAfterMs: verdict!.retryAfterMs,
    });
  }
}

/**
 * Counts a try before anybody knows whether it is right: a thousand at once come no further than ten one after the other.
 * @param isWrong which errors count; after every other outcome the try is given back.
 */
export async function countWrong<T>(
  limiter: RateLimiter,
  counts: readonly Count[],
  isWrong: (error: unknown) => boolean,
  run: () => Promise<T>,
): Promise<T> {
  await countUse(limiter, counts);
  let wrong = false;
  try {
    return await run();
  } catch (error) {
    wrong = isWrong(error);
    throw error;
  } finally {
    if (!wrong) await limiter.giveBack(counts);
  }
}
