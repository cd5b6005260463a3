import { invalid } from '../platform/api-errors.ts';

/** Checks a time that a caller gave in the form of `Moment`, and refuses days that a month does not have: Date takes a 30th of February for a day in March. */
export function moment(param: string, text: string): string {
  const ms = Date.parse(text);
  const day = text.slice(0, 10);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(ms) || Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day))
    throw invalid(param, `${param} is not a valid timestamp.`);
  return new Date(ms).toISOString();
}
