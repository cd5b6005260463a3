import type { BucketLimit, LongWindowLimit, WindowLimit } from '@parley/protocol';
import type { Verdict } from './port.ts';

/** The arithmetic of both kinds of limits, with the time passed in. */

/** A bucket is stored as the time at which it is full again, in milliseconds (GCRA). */
export function bucketVerdict(fullAt: number, limit: BucketLimit, now: number): Verdict & { fullAt: number } {
  const step = 1_000 / limit.perSecond;
  const next = Math.max(fullAt, now) + step;
  const allowed = next - now <= limit.burst * step + 1e-6;
  const at = allowed ? next : Math.max(fullAt, now);
  return {
    allowed,
    limit: limit.burst,
    remaining: Math.max(0, Math.floor(limit.burst - (at - now) / step + 1e-6)),
    resetMs: Math.max(0, at - now),
    retryAfterMs: allowed ? 0 : Math.max(1, Math.ceil(next - now - limit.burst * step)),
    fullAt: at,
  };
}

/** The time at which the bucket is full again after `cost` was taken from it, even if it was empty. */
export const owed = (fullAt: number, limit: BucketLimit, cost: number, now: number): number =>
  Math.max(fullAt, now) + (cost * 1_000) / limit.perSecond;

export interface WindowState {
  /** The number of the window that `count` belongs to, counted since the epoch; `before` is the count of the one before. */
  index: number;
  count: number;
  before: number;
}

type AnyWindow = WindowLimit | LongWindowLimit;

export const windowOf = (limit: AnyWindow): { max: number; ms: number } =>
  'perMinute' in limit ? { max: limit.perMinute, ms: 60_000 } : { max: limit.max, ms: limit.windowMs };

/** The previous window counts with the share of it that lies within the last `ms`. */
export function windowVerdict(
  state: WindowState | undefined,
  limit: AnyWindow,
  now: number,
): Verdict & { state: WindowState } {
  const { max, ms } = windowOf(limit);
  const index = Math.floor(now / ms);
  const current: WindowState =
    state?.index === index
      ? state
      : { index, count: 0, before: state?.index === index - 1 ? state.count : 0 };
  const elapsed = now - index * ms;
  const used = current.count + current.before * (1 - elapsed / ms);
  const allowed = used + 1 <= max;
  const next = allowed ? { ...current, count: current.count + 1 } : current;
  return {
    allowed,
    limit: max,
    remaining: Math.max(0, Math.floor(max - used - (allowed ? 1 : 0))),
    resetMs: ms - elapsed,
    retryAfterMs: allowed ? 0 : retryAfter(current, max, ms, elapsed),
    state: next,
  };
}

/** The state with one given back, if the window is still the same. */
export const givenBack = (state: WindowState, limit: AnyWindow, now: number): WindowState =>
  state.index === Math.floor(now / windowOf(limit).ms) && state.count > 0
    ? { ...state, count: state.count - 1 }
    : state;

function retryAfter(state: WindowState, max: number, ms: number, elapsed: number): number {
  const room = max - 1 - state.count;
  // Room appears while the previous window slides out; otherwise the present one must slide out first.
  if (room >= 0 && state.before > 0) return Math.max(1, Math.ceil((1 - room / state.before) * ms - elapsed));
  const nextRoom = max - 1;
  return Math.max(1, Math.ceil(ms - elapsed + (1 - nextRoom / state.count) * ms));
}
