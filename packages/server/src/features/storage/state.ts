import type { SinkStatus } from './sql.ts';

/** SPEC 3: how the sink of an environment does, and what is told when that changes. */

const degradedSeconds = 5 * 60;
const failingSeconds = 60 * 60;

export interface SinkSigns {
  now: number;
  /** When the oldest change was made that is not in the customer's database; null: there is none. */
  oldest: number | null;
  /** Since when nothing succeeds; null: the last try did. */
  failingSince: number | null;
}

export type SinkNews =
  | { type: 'sink.degraded'; data: { lagSeconds: number } }
  | { type: 'sink.failing'; data: { errorClass: string; since: string } }
  | { type: 'sink.recovered'; data: { lagSeconds: number } };

export const lagSeconds = (oldest: number | null, now: number): number =>
  oldest === null ? 0 : Math.max(0, Math.round((now - oldest) / 100) / 10);

export function nextStatus(signs: SinkSigns): SinkStatus {
  if (signs.failingSince !== null && signs.now - signs.failingSince > failingSeconds * 1_000)
    return 'failing';
  return lagSeconds(signs.oldest, signs.now) > degradedSeconds ? 'degraded' : 'healthy';
}

/** Each is told once: on the way down what is worse, on the way up only that all is well again. */
export function news(
  before: SinkStatus,
  after: SinkStatus,
  signs: SinkSigns,
  errorClass: string,
): SinkNews | null {
  const lag = lagSeconds(signs.oldest, signs.now);
  if (before === after) return null;
  if (after === 'healthy') return { type: 'sink.recovered', data: { lagSeconds: lag } };
  if (after === 'failing')
    return { type: 'sink.failing', data: { errorClass, since: new Date(signs.failingSince!).toISOString() } };
  return before === 'healthy' ? { type: 'sink.degraded', data: { lagSeconds: lag } } : null;
}
