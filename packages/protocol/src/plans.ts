import type { BucketLimit } from './limits.ts';

export interface Plan {
  name: PlanName;
  /** Monthly active users and open connections; null means no limit. */
  mauLimit: number | null;
  connectionLimit: number | null;
  secretKey: BucketLimit;
  callParticipants: number;
  /** Bytes of files that an environment may have in the service's own storage; null means no limit. */
  mediaBytes: number | null;
}

export const planNames = ['free', 'starter', 'growth', 'scale', 'enterprise'] as const;
export type PlanName = (typeof planNames)[number];

const gigabyte = 1e9;

/** What the plans allow by default; the file that CHAT_PLANS names overrides it. */
export const plans: Record<PlanName, Plan> = {
  free: plan('free', 1_000, 1_000, 100, 4, 5 * gigabyte),
  starter: plan('starter', 10_000, 5_000, 200, 8, 50 * gigabyte),
  growth: plan('growth', 100_000, 20_000, 500, 16, 500 * gigabyte),
  scale: plan('scale', 1_000_000, 100_000, 1_000, 32, 5_000 * gigabyte),
  enterprise: plan('enterprise', null, null, 5_000, 50, null),
};

function plan(
  name: PlanName,
  mauLimit: number | null,
  connectionLimit: number | null,
  perSecond: number,
  callParticipants: number,
  mediaBytes: number | null,
): Plan {
  return {
    name,
    mauLimit,
    connectionLimit,
    secretKey: { perSecond, burst: perSecond * 2 },
    callParticipants,
    mediaBytes,
  };
}
