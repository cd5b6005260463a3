import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError } from '@parley/protocol';
import { isUnavailable } from '../../platform/postgres/errors.ts';
import type { Answer } from './answer.ts';

export function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status).headers(answer.headers ?? {});
  if (answer.body === null) return reply.send();
  if (answer.body instanceof Readable) return reply.send(answer.body);
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer.body));
}

/** Turns any error, also Fastify's own, into an ApiError. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new ApiError('body_too_large');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new ApiError('invalid_request', { message: 'Send the body as application/json.' });
  // The framework gives a status to what it refuses, and to a body that ends too early.
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new ApiError('invalid_request', { message: 'The request is malformed.' });
  return new ApiError(isUnavailable(error) ? 'service_unavailable' : 'internal');
}
