import { STATUS_CODES } from 'node:http';
import type { ApiError } from '@parley/protocol';
import type { Ids } from '../../platform/clock.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { ofAddress, rateHeaders, take } from '../limits.ts';
import { failure } from './answer.ts';

/** Answers contain what only their caller may see, and are always JSON. Pages, which are public, set other headers. */
export const answerHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

export const retryAfter = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1000)));

/**
 * A complete HTTP answer, for input that never becomes a request: what is not HTTP, and upgrades that are refused
 * (errors#body). It counts for the address, whose rate is told if the limiter can be asked.
 */
export async function rawFailure(
  { limiter, ids }: { limiter: RateLimiter; ids: Ids },
  error: ApiError,
  address: string,
  headers: Record<string, string>,
): Promise<string> {
  const rate = await take(limiter, [ofAddress(address)])
    .then(({ verdict }) => rateHeaders(verdict))
    .catch(() => ({}));
  const requestId = ids.make('request');
  const { status, body } = failure(error, requestId);
  const text = JSON.stringify(body);
  const all = {
    'Request-Id': requestId,
    Connection: 'close',
    ...answerHeaders,
    ...rate,
    ...headers,
    ...(error.retryAfterMs === null ? {} : { 'Retry-After': retryAfter(error.retryAfterMs) }),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(text)),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`;
}
