import type { BucketLimit, WindowLimit } from '@parley/protocol';

export type Limit = BucketLimit | WindowLimit;

export interface Verdict {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Until the limit is whole again. */
  resetMs: number;
  /** When refused: until one more is allowed. */
  retryAfterMs: number;
}

/** Counts calls against limits. Buckets refill evenly; windows count a minute, sliding. */
export interface RateLimiter {
  /** Takes one from every limit, or from none: the first that refuses is the verdict. */
  take(checks: readonly { key: string; limit: Limit }[]): Promise<Verdict[]> | Verdict[];
}

export const isBucket = (limit: Limit): limit is BucketLimit => 'burst' in limit;
