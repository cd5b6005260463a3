import { HistoryError } from '../../platform/history/port.ts';

/**
 * Slots that are set aside: their database stopped the process that speaks with databases twice within an hour, or
 * the operator says so. Nothing connects to them for an hour, in no process and after no restart, but a test by hand
 * does. All times are of the store's clock.
 */

/** Why a slot is not connected to; null if it is. */
export function asideOf({
  aside,
}: {
  aside: string | null;
}): { byOperator: boolean; error: HistoryError } | null {
  if (aside === null) return null;
  const byOperator = aside === 'operator';
  const why = byOperator
    ? 'the operator of this service did so'
    : `what it sent stopped the process that reads it twice within an hour. It is tried again at ${aside}, or when it is tested`;
  return { byOperator, error: new HistoryError('set_aside', undefined, why) };
}
