import type { SinkStatus } from './sql.ts';

/** SPEC 3: the state of an environment's sink, and what is reported when it changes. */

const degradedSeconds = 5 * 60;
const failingSeconds = 60 * 60;

export interface SinkSigns {
  now: number;
  /** When the oldest change that is not in the customer's database was made; null if there is none. */
  oldest: number | null;
  /** Since when every try has failed; null if the last one succeeded. */
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

/** Each change of state is reported once: every worsening, but only the full recovery. */
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
