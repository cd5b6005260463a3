import { setTimeout as delay } from 'node:timers/promises';
import { errorFrom, ParleyError } from './errors.ts';

export interface TransportOptions {
  url: string;
  authorization: string;
  fetch: typeof globalThis.fetch;
  now: () => number;
  random: () => number;
  uuid: () => string;
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  tries: number;
  timeoutMs: number;
}

export interface RequestOptions {
  signal?: AbortSignal;
  /** Replaces the generated key, so that a retry of your own, even from another process, acts only once. */
  idempotencyKey?: string;
}

export interface Call {
  method: string;
  path: string;
  query: Record<string, unknown>;
  body: Record<string, unknown> | undefined;
}

const backoffBaseMs = 500;
const backoffMaxMs = 8_000;
/** Milliseconds; if the service asks for a longer wait, the error is thrown at once and the caller decides. */
const longestWaitMs = 30_000;

export const defaultSleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal });

const retryable = (error: ParleyError): boolean =>
  error.code === 'network_error' || error.status === 429 || error.status >= 500;

/**
 * Makes one call, tried at most `tries` times. POST, PATCH and DELETE carry the same Idempotency-Key on every try, so
 * that a call whose answer was lost never acts twice (sdk#server-retries). Waits are what the service asks for plus
 * full jitter.
 */
export async function request(options: TransportOptions, call: Call, own: RequestOptions): Promise<unknown> {
  const url = urlOf(options.url, call);
  const headers: Record<string, string> = {
    accept: 'application/json',
    authorization: options.authorization,
  };
  if (call.body !== undefined) headers['content-type'] = 'application/json';
  if (call.method === 'POST' || call.method === 'PATCH' || call.method === 'DELETE') {
    headers['idempotency-key'] = own.idempotencyKey ?? options.uuid();
  }
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);

  for (let attempt = 0; ; attempt++) {
    own.signal?.throwIfAborted();
    try {
      return await once(options, url, { method: call.method, headers, body }, own.signal);
    } catch (error) {
      own.signal?.throwIfAborted();
      if (!(error instanceof ParleyError) || !retryable(error) || attempt + 1 >= options.tries) throw error;
      const asked = error.retryAfterMs ?? 0;
      if (asked > longestWaitMs) throw error;
      const jitter = options.random() * Math.min(backoffMaxMs, backoffBaseMs * 2 ** attempt);
      await options.sleep(asked + jitter, own.signal);
    }
  }
}

async function once(
  options: TransportOptions,
  url: URL,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  let response: Response;
  let text: string;
  try {
    response = await options.fetch(url, {
      ...init,
      // The key must be sent to this address only.
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (cause) {
    throw new ParleyError({
      type: 'unavailable',
      code: 'network_error',
      message: timeout.aborted ? 'The service did not answer in time.' : 'The service could not be reached.',
      status: 0,
      cause,
    });
  }
  const parsed = text === '' ? undefined : parse(text);
  if (!response.ok) throw errorFrom(response, parsed, options.now());
  if (text !== '' && parsed === undefined) throw errorFrom(response, undefined, options.now());
  return parsed;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function urlOf(origin: string, call: Call): URL {
  const url = new URL(origin.replace(/\/+$/, '') + call.path);
  for (const [name, value] of Object.entries(call.query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}
