import type { BucketLimit, WindowLimit } from '@parley/protocol';
import type { Verdict } from './port.ts';

/** The arithmetic of both limits, with the clock passed in. */

/** A bucket is kept as the moment at which it is full again (GCRA). */
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

export interface WindowState {
  minute: number;
  count: number;
  before: number;
}

const minuteMs = 60_000;

/** The minute before counts for the share of it that is still inside the last 60 s. */
export function windowVerdict(
  state: WindowState | undefined,
  limit: WindowLimit,
  now: number,
): Verdict & { state: WindowState } {
  const minute = Math.floor(now / minuteMs);
  const current: WindowState =
    state?.minute === minute
      ? state
      : { minute, count: 0, before: state?.minute === minute - 1 ? state.count : 0 };
  const elapsed = now - minute * minuteMs;
  const used = current.count + current.before * (1 - elapsed / minuteMs);
  const allowed = used + 1 <= limit.perMinute;
  const next = allowed ? { ...current, count: current.count + 1 } : current;
  return {
    allowed,
    limit: limit.perMinute,
    remaining: Math.max(0, Math.floor(limit.perMinute - used - (allowed ? 1 : 0))),
    resetMs: minuteMs - elapsed,
    retryAfterMs: allowed ? 0 : retryAfter(current, limit, elapsed),
    state: next,
  };
}

function retryAfter(state: WindowState, limit: WindowLimit, elapsed: number): number {
  const room = limit.perMinute - 1 - state.count;
  // Room comes while the minute before slides out; otherwise this minute itself must slide out first.
  if (room >= 0 && state.before > 0)
    return Math.max(1, Math.ceil((1 - room / state.before) * minuteMs - elapsed));
  const nextRoom = limit.perMinute - 1;
  return Math.max(1, Math.ceil(minuteMs - elapsed + (1 - nextRoom / state.count) * minuteMs));
}
