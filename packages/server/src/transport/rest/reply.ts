import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError } from '@parley/protocol';
import { isUnavailable } from '../../platform/postgres/errors.ts';
import type { Answer } from './answer.ts';
import { jsonOf } from './pieces.ts';

export function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status).headers(answer.headers ?? {});
  if (answer.body === null) return reply.send();
  if (answer.body instanceof Readable) return reply.send(answer.body);
  return reply.type('application/json; charset=utf-8').send(jsonOf(answer.body as object));
}

/** Turns any error, also Fastify's own, into an ApiError. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error)) return new ApiError('service_unavailable');
  switch ((error as { code?: string }).code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('body_too_large');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError('invalid_request', { message: 'Send the body as application/json.' });
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ApiError('invalid_request', { message: 'The request is malformed.' });
    default:
      return new ApiError('internal');
  }
}
