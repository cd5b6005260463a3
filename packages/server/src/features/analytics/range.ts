import { limits } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { isStorable } from '../time.ts';

/** analytics#range: the steps that a request asks for. All times are UTC, in milliseconds. */

export type Granularity = 'hour' | 'day';

export interface Range {
  granularity: Granularity;
  /** The beginning of the first step, and of the step after the last. */
  from: number;
  to: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
export const stepMs = { hour: hourMs, day: dayMs } as const;
const defaultDays = { hour: limits.analyticsDays.hour, day: 30 } as const;

/** The step numbers in the tables of analytics (migrations/0025). */
export const stepNumbers = { hour: 0, day: 1 } as const;

/** Steps are whole: `from` is rounded down to the beginning of its step, `to` up to the end of its step. */
export function readRange(
  input: { from?: string; to?: string; granularity?: Granularity },
  now: number,
): Range {
  const granularity = input.granularity ?? 'day';
  const step = stepMs[granularity];
  const given = (name: 'from' | 'to'): number | undefined =>
    input[name] === undefined ? undefined : moment(input[name], name);
  const to = given('to') ?? Math.floor(now / step) * step + step;
  const from = given('from') ?? to - defaultDays[granularity] * dayMs;
  if (from >= to) throw invalid('from', '`from` must be before `to`.');
  const most = limits.analyticsDays[granularity];
  if (to - from > most * dayMs)
    throw invalid('from', `A range by ${granularity} is at most ${most} days long.`);
  const range = { granularity, from: Math.floor(from / step) * step, to: Math.ceil(to / step) * step };
  for (const name of ['from', 'to'] as const)
    if (!isStorable(range[name])) throw invalid(name, `\`${name}\` is in the years 1 to 9999.`);
  return range;
}

const form =
  /^(\d{4}-\d{2}-\d{2})(?:T((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?)(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/i;

/**
 * Parses a date, or a timestamp with any offset; without an offset it is UTC. (In a query an unescaped + has become a
 * space.)
 */
function moment(text: string, param: string): number {
  const [, day = '', time = '00:00', offset = 'Z'] = form.exec(text.replace(' ', '+')) ?? [];
  const midnight = Date.parse(day);
  // Date turns 30 February into 2 March.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day))
    throw invalid(param, `\`${param}\` is a date (2026-11-01) or a timestamp (2026-11-01T13:00:00Z).`);
  return Date.parse(`${day}T${time.replace(',', '.')}${offset.toUpperCase().replace(/:?(\d\d)$/, ':$1')}`);
}

export interface Piece {
  step: number;
  at: string;
}

/**
 * Cuts the range into as few months, days and hours as possible: at most 12 months with the days around them, or 7
 * days with hours.
 */
export function piecesOf({ from, to }: Range): Piece[] {
  const pieces: Piece[] = [];
  for (let at = from; at < to;) {
    const step = [nextMonth(at), at % dayMs === 0 ? at + dayMs : null, at + hourMs].findIndex(
      (end) => end !== null && end <= to,
    );
    pieces.push({ step: 2 - step, at: new Date(at).toISOString() });
    at = [nextMonth(at), at + dayMs, at + hourMs][step]!;
  }
  return pieces;
}

/** The end of the month that begins at this time; null if none does. */
function nextMonth(at: number): number | null {
  const date = new Date(at);
  if (at % dayMs !== 0 || date.getUTCDate() !== 1) return null;
  return date.setUTCMonth(date.getUTCMonth() + 1);
}
