import { ApiError } from '@parley/protocol';

/** A value that fits its schema and is wrong all the same. */
export const invalid = (param: string, message: string): ApiError =>
  new ApiError('invalid_request', { param, message });

/** @param what as it begins a sentence: Message */
export const notFound = (what: string): ApiError =>
  new ApiError('not_found', { message: `${what} not found.` });

/** @param param what there is too much of. */
export const limitReached = (param: string, message: string, limit: number): ApiError =>
  new ApiError('limit_reached', { param, message, details: { limit } });
