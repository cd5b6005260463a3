import { OutboundRefused } from '../outbound/outbound.ts';
import type { HttpResponse, PushDependencies, PushOutcome } from './port.ts';

export const requestTimeoutMs = 10_000;
const maxResponseBytes = 64 * 1024;
const maxRetryAfterMs = 60 * 60 * 1000;

export type PostResult = { response: HttpResponse } | { failed: PushOutcome; refused: boolean };

/** Sends a POST and turns network errors into an outcome. */
export async function post(
  request: PushDependencies['request'],
  url: string,
  headers: Record<string, string>,
  body: Buffer | string,
): Promise<PostResult> {
  try {
    const response = await request({
      url,
      method: 'POST',
      headers,
      body: Buffer.from(body),
      timeoutMs: requestTimeoutMs,
      maxBytes: maxResponseBytes,
    });
    return { response };
  } catch (error) {
    return {
      failed: { kind: 'retry', reason: errorReason(error) },
      refused: error instanceof OutboundRefused,
    };
  }
}

/** An error's code or class, never its message, because messages contain addresses. */
export function errorReason(error: unknown): string {
  if (!(error instanceof Error)) return 'network_error';
  return ('code' in error && codeText(error.code)) || codeText(error.name) || 'network_error';
}

/** 429 and 5xx are the provider's trouble; every other status concerns what we sent. */
export function statusOutcome(response: HttpResponse, now: number, reason = ''): PushOutcome {
  const text = reason === '' ? `http_${response.status}` : reason;
  if (response.status !== 429 && response.status < 500) return { kind: 'rejected', reason: text };
  return { kind: 'retry', reason: text, ...retryAfter(response.headers['retry-after'], now) };
}

/** `Retry-After` in seconds or as a date (RFC 9110 10.2.3), at most an hour. */
export function retryAfter(header: string | string[] | undefined, now: number): { retryAfterMs?: number } {
  const value = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  const delay = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(delay) ? {} : { retryAfterMs: Math.min(Math.max(delay, 0), maxRetryAfterMs) };
}

/** The body as a JSON object, or an empty object if it is something else. */
export function jsonObject(body: Buffer): Record<string, unknown> {
  try {
    return asObject(JSON.parse(body.toString('utf8')));
  } catch {
    return {};
  }
}

export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

/** A vendor's error code for logs if it is one short word, otherwise ''. */
export function codeText(value: unknown): string {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : '';
}
