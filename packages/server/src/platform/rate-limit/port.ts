import type { BucketLimit, LongWindowLimit, WindowLimit } from '@parley/protocol';

export type Limit = BucketLimit | WindowLimit | LongWindowLimit;

export interface Verdict {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Until the limit is whole again. */
  resetMs: number;
  /** When refused: until one more is allowed. */
  retryAfterMs: number;
}

/** Counts calls against limits. Buckets refill evenly; windows slide. */
export interface RateLimiter {
  /** Takes one from every limit, or from none: the first that refuses is the verdict. */
  take(checks: readonly { key: string; limit: Limit }[]): Promise<Verdict[]> | Verdict[];
  /** Takes one back from windows where what was counted turned out not to count; nothing where they have moved on. */
  giveBack(checks: readonly { key: string; limit: WindowLimit | LongWindowLimit }[]): Promise<void> | void;
  /** Takes `cost` more from a bucket, whatever is left: where it was not enough, the bucket refuses until that is made up. */
  owe(key: string, limit: BucketLimit, cost: number): Promise<void> | void;
}

export const isBucket = (limit: Limit): limit is BucketLimit => 'burst' in limit;
