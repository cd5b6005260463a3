/**
 * When a delivery is tried (webhooks#schedule):
 *
 *   pending --2xx--> succeeded
 *   pending --anything else--> pending, tried again after the next delay of the table
 *   pending --anything else, table used up--> failed
 *
 * The content of the answer changes nothing, not even a 410 or a Retry-After.
 */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Delays in milliseconds after the first attempt, which is immediate. */
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

/**
 * Hours after its event in which an attempt may need the payload: a replay may begin as long as events can be replayed,
 * and then has all attempts.
 */
export const payloadHours = 7 * 24;

/** Milliseconds from the end of attempt number `attempt` (counted from 1) to the next; null after the last. */
export function retryDelay(attempt: number, random: number): number | null {
  const delay = retryDelays[attempt - 1];
  return delay === undefined ? null : Math.round(delay * (0.8 + 0.4 * random));
}
