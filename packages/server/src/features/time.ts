import { invalid } from '../platform/api-errors.ts';

/** Whether the store takes a time as it is written: PostgreSQL has no year 0, and a year above 9999 is written with a sign. */
export const isStorable = (ms: number): boolean => new Date(ms).toISOString() >= '0001';

/** Checks a time that a caller gave in the form of `Moment`, and refuses days that a month does not have: Date takes a 30th of February for a day in March. */
export function moment(param: string, text: string): string {
  const ms = Date.parse(text);
  const day = text.slice(0, 10);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day);
  if (!isDay || Number.isNaN(ms) || !isStorable(ms))
    throw invalid(param, `${param} is not a valid timestamp.`);
  return new Date(ms).toISOString();
}
