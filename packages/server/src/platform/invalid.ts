import { ApiError } from '@parley/protocol';

/** A value that fits its schema and is wrong all the same. */
export const invalid = (param: string, message: string): ApiError =>
  new ApiError('invalid_request', { param, message });
