/**
 * When a delivery is tried (SPEC 6, delivery rule 2; DECISIONS, Webhooks):
 *
 *   pending --2xx--> succeeded
 *   pending --anything else--> pending, tried again after the next delay of the table
 *   pending --anything else, table used up--> failed
 *   pending --410--> failed, and the endpoint is disabled
 */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** After the first attempt, which is immediate. */
export const retryDelays: readonly number[] = [
  10 * second,
  minute,
  10 * minute,
  hour,
  3 * hour,
  6 * hour,
  12 * hour,
  24 * hour,
  24 * hour,
];

const longest = Math.max(...retryDelays);

/**
 * Milliseconds from the end of attempt number `attempt` (1: the first) to the next; null: there is none. `Retry-After` can
 * only make it later, by at most the table's longest delay.
 */
export function retryDelay(attempt: number, random: number, retryAfterMs = 0): number | null {
  const delay = retryDelays[attempt - 1];
  if (delay === undefined) return null;
  const jittered = delay * (0.8 + 0.4 * random);
  return Math.round(Math.max(jittered, Math.min(retryAfterMs, longest)));
}

/** Seconds or an HTTP date; anything else counts as not given. */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * second;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
