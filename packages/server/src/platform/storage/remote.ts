import type { OutboundRequest, OutboundResponse } from '../outbound/outbound.ts';
import { HEAD_BYTES, StorageUnavailable } from './port.ts';
import type { StorageDeps, StoredObject } from './port.ts';

/**
 * Makes one call to a provider; if there is no answer, throws StorageUnavailable. URLs stay out of messages, because
 * they are signed.
 */
export async function call(
  deps: StorageDeps,
  provider: string,
  request: OutboundRequest,
): Promise<OutboundResponse> {
  try {
    return await deps.request(request);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message || cause.name : String(cause);
    throw new StorageUnavailable(`${provider} is unreachable: ${why}`, { cause });
  }
}

export function unexpected(provider: string, doing: string, status: number): StorageUnavailable {
  return new StorageUnavailable(`${provider} answered ${status} to ${doing}`);
}

/**
 * Reads the first bytes of an object and its size by one ranged GET of a signed URL; returns the answer itself
 * if there is no object.
 */
export async function readHead(
  deps: StorageDeps,
  provider: string,
  url: string,
  headers?: Record<string, string>,
): Promise<{ found: StoredObject } | { answer: OutboundResponse }> {
  const range = { range: `bytes=0-${HEAD_BYTES - 1}` };
  const answer = await call(deps, provider, { url, headers: { ...headers, ...range }, maxBytes: HEAD_BYTES });
  // An empty object has no first byte, so the answer is 416 with `bytes */0`.
  const total = /^bytes (?:\d+-\d+|\*)\/(\d+)$/.exec(answer.headers['content-range'] ?? '')?.[1];
  if (answer.status === 206 && total) return { found: { size: Number(total), head: answer.body } };
  if (answer.status === 416 && Number(total ?? 0) === 0)
    return { found: { size: 0, head: new Uint8Array() } };
  if (answer.status === 200) {
    const size = Number(answer.headers['content-length'] ?? (answer.truncated ? NaN : answer.body.length));
    if (Number.isSafeInteger(size)) return { found: { size, head: answer.body } };
  }
  return { answer };
}
