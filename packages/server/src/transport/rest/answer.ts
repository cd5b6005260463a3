import type { ApiError } from '@parley/protocol';
import type { ErrorBody } from '@parley/protocol';
import { Reply } from '../../features/context.ts';

/** The answer to a request: a status and a JSON body (null for none). */
export interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

export const success = (result: unknown, status: number): Answer =>
  result instanceof Reply
    ? {
        status: result.status,
        body: result.status === 204 ? null : (result.body as unknown),
        headers: result.headers,
      }
    : { status: result === undefined ? 204 : status, body: result ?? null };

export const failure = (error: ApiError, requestId: string): Answer => ({
  status: error.row.http ?? 400,
  body: {
    error: {
      type: error.row.type,
      code: error.code,
      message: error.message,
      ...(error.param === undefined ? {} : { param: error.param }),
      requestId,
      ...(error.retryAfterMs === null ? {} : { retryAfterMs: error.retryAfterMs }),
      ...(error.details === undefined ? {} : { details: error.details }),
    },
  } satisfies ErrorBody,
});
