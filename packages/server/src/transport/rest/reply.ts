import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError } from '@parley/protocol';
import { isUnavailable } from '../../platform/postgres/errors.ts';
import type { Answer } from './answer.ts';
import { pieceBytes } from './slow-clients.ts';
import type { WrittenBody } from './slow-clients.ts';

export function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status).headers(answer.headers ?? {});
  if (answer.body === null) return reply.send();
  if (answer.body instanceof Readable) return reply.send(answer.body);
  return reply.type('application/json; charset=utf-8').send(jsonOf(answer.body as object));
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

/**
 * The JSON of an answer. A list is written item by item, because serializing a megabyte at once would delay all other
 * requests.
 */
export function jsonOf(body: object): string | WrittenBody {
  if (!('data' in body) || !Array.isArray(body.data)) return JSON.stringify(body);
  const { data, ...rest } = body as { data: unknown[] };
  const texts = pageTexts(data, rest);
  const first = texts.next().value!;
  if (first.items === data.length) return first.text;
  const bytes = Math.ceil((first.text.length * data.length) / first.items);
  return Object.assign(Readable.from(encoded(first.text, texts)), { bytes });
}

function* encoded(first: string, texts: Iterable<{ text: string }>): Generator<Buffer> {
  yield Buffer.from(first);
  for (const { text } of texts) yield Buffer.from(text);
}

/** Yields `{"data":[…],…}` in texts of about `pieceBytes`, each with the number of items in it. */
function* pageTexts(data: unknown[], rest: object): Generator<{ text: string; items: number }> {
  const others = JSON.stringify(rest).slice(1);
  const end = others === '}' ? ']}' : `],${others}`;
  let text = '{"data":[';
  let items = 0;
  for (const [at, item] of data.entries()) {
    if (at > 0) text += ',';
    text += JSON.stringify(item);
    items += 1;
    if (text.length < pieceBytes || at === data.length - 1) continue;
    yield { text, items };
    [text, items] = ['', 0];
  }
  yield { text: text + end, items };
}
