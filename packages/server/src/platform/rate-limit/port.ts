import type { BucketLimit, LongWindowLimit, WindowLimit } from '@parley/protocol';

export type Limit = BucketLimit | WindowLimit | LongWindowLimit;

/** What is counted, and for whom. All keys of one `take` are for the same: Redis Cluster keeps them together then. */
export interface LimitKey {
  what: string;
  of: string;
}

export const keyName = ({ what, of }: LimitKey): string => `${what} ${of}`;

export interface Check {
  key: LimitKey;
  limit: Limit;
}

export interface Verdict {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Milliseconds until the limit is unused again. */
  resetMs: number;
  /** If refused, milliseconds until one more is allowed. */
  retryAfterMs: number;
}

/** Counts calls against limits. Buckets refill evenly; windows slide. */
export interface RateLimiter {
  /** Takes one from every limit, or from none if one refuses. */
  take(checks: readonly Check[]): Promise<Verdict[]> | Verdict[];
  /** Returns one to windows if what was counted turned out not to count; does nothing if a window has ended. */
  giveBack(checks: readonly { key: LimitKey; limit: WindowLimit | LongWindowLimit }[]): Promise<void> | void;
  /** Takes `cost` more from a bucket, even if it is empty; the bucket then refuses until the debt is refilled. */
  owe(key: LimitKey, limit: BucketLimit, cost: number): Promise<void> | void;
}

export const isBucket = (limit: Limit): limit is BucketLimit => 'burst' in limit;
