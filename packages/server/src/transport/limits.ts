import { ApiError, rateLimits } from '@parley/protocol';
import type { BucketLimit, RateClass } from '@parley/protocol';
import type { Caller, Environment, Services } from '../features/context.ts';
import { networkOf } from '../platform/address.ts';
import type { Check, LimitKey, RateLimiter, Verdict } from '../platform/rate-limit/port.ts';

/**
 * plans#rates: which limits a request counts against. A server's calls count only against the key rate of its environment,
 * those of the dashboard against the account's limit, and those of callers without a credential against their address's.
 */
export function limitsOf(
  { user, person }: Caller,
  rate: RateClass,
  plans: Services['plans'],
  ip: string,
  env: Environment | undefined,
): Check[] {
  if (person) return [{ key: { what: 'account', of: String(person.account.no) }, limit: rateLimits.account }];
  if (!env) return [ofAddress(ip)];
  if (!user) return [{ key: { what: 'key', of: String(env.no) }, limit: plans[env.plan].secretKey }];
  const name = `${env.no}:${user.no}`;
  return [{ key: { what: 'user', of: name }, limit: rateLimits.user }, ...ownLimits(name, rate)];
}

/** A frame counts against its operation's own limit, which REST shares; without one, it counts as a request of the user. */
export function frameLimits(env: number, user: number, rate: RateClass): Check[] {
  const name = `${env}:${user}`;
  const own = ownLimits(name, rate);
  return own.length > 0 ? own : [{ key: { what: 'user', of: name }, limit: rateLimits.user }];
}

/** Each class is counted under its name; a request has no limit of its own. */
function ownLimits(user: string, rate: RateClass): Check[] {
  if (rate === 'request') return [];
  const check = (what: Exclude<RateClass, 'request'> | 'sendMinute'): Check => ({
    key: { what, of: user },
    limit: rateLimits[what],
  });
  return rate === 'send' ? [check('send'), check('sendMinute')] : [check(rate)];
}

/** Callers without a credential are counted by their address. */
export const ofAddress = (ip: string): Check => ({
  key: { what: 'address', of: networkOf(ip) },
  limit: rateLimits.anonymous,
});

/**
 * How much may be stored for Idempotency-Keys, in KB. An environment's server has 1 KB for each request that its plan
 * allows, and an hour's worth at once. Its clients together have the same amount, and each client a small part of it.
 * An account has that part too.
 */
export function answerLimits(
  { user, person }: Caller,
  plans: Services['plans'],
  env: Environment | undefined,
): { key: LimitKey; limit: BucketLimit }[] {
  if (person)
    return [
      { key: { what: 'accountAnswers', of: String(person.account.no) }, limit: rateLimits.userAnswers },
    ];
  // Nothing is stored for callers who are not signed in.
  if (!env) return [];
  const { no, plan } = env;
  const { perSecond } = plans[plan].secretKey;
  const limit = { perSecond, burst: perSecond * 3_600 };
  if (!user) return [{ key: { what: 'serverAnswers', of: String(no) }, limit }];
  return [
    { key: { what: 'userAnswers', of: `${no}:${user.no}` }, limit: rateLimits.userAnswers },
    { key: { what: 'clientAnswers', of: String(no) }, limit },
  ];
}

interface Taken {
  verdict: Verdict;
  refused: ApiError | null;
}

export async function take(limiter: RateLimiter, checks: readonly Check[]): Promise<Taken> {
  const verdicts = await limiter.take(checks);
  if (verdicts.every((v) => v.allowed)) return { verdict: verdicts[0]!, refused: null };
  const worst = verdicts
    .filter((v) => !v.allowed)
    .reduce((a, b) => (b.retryAfterMs > a.retryAfterMs ? b : a));
  return { verdict: worst, refused: new ApiError('rate_limited', { retryAfterMs: worst.retryAfterMs }) };
}

export const rateHeaders = (verdict: Verdict): Record<string, string> => ({
  'RateLimit-Limit': String(verdict.limit),
  'RateLimit-Remaining': String(verdict.remaining),
  'RateLimit-Reset': String(Math.ceil(verdict.resetMs / 1000)),
});
