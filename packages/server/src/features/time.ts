import { ApiError } from '@parley/protocol';

/** Checks a time that a caller gave in the form of `Moment`, because PostgreSQL refuses dates such as a 30th of February. */
export function moment(param: string, text: string): string {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new ApiError('invalid_request', { param, message: `${param} is not a valid timestamp.` });
  return new Date(ms).toISOString();
}
