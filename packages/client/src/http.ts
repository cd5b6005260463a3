import type { Clock } from './clock.ts';
import type { Tokens } from './connection/tokens.ts';
import { backoff } from './connection/backoff.ts';
import { asError, isTransient, ParleyError } from './errors.ts';

export interface HttpOptions {
  url: string;
  env: string | undefined;
  tokens: Tokens;
  fetch: typeof fetch;
  clock: Clock;
  random(): number;
  newId(): string;
}

export interface CallOptions {
  body?: unknown;
  query?: Record<string, string | number | undefined>;
  /** How often a transient error is tried again; 2 by default. */
  retries?: number;
}

const timeoutMs = 30_000;
const maxWaitMs = 30_000;

/** REST with the user's token; `token_expired` is refreshed and retried once (sdk#token-refresh). */
export class Http {
  #o: HttpOptions;
  constructor(options: HttpOptions) {
    this.#o = options;
  }

  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    // One key for all tries: if an answer was lost, the next try replays it instead of repeating the action.
    const key = method === 'GET' ? null : this.#o.newId();
    let refreshed = false;
    for (let tries = 0; ;) {
      const token = await this.#o.tokens.get();
      try {
        return await this.#once<T>(method, path, options, token, key);
      } catch (e) {
        const error = asError(e);
        if (error.code === 'token_expired' && !refreshed) {
          refreshed = true;
          await this.#o.tokens.refresh(token);
          continue;
        }
        if (!isTransient(error) || tries >= (options.retries ?? 2)) throw error;
        const wait = Math.max(error.retryAfterMs ?? 0, backoff(tries++, this.#o.random));
        if (wait > maxWaitMs) throw error;
        await new Promise<void>((resolve) => this.#o.clock.setTimeout(resolve, wait));
      }
    }
  }

  async #once<T>(
    method: string,
    path: string,
    { body, query }: CallOptions,
    token: string,
    key: string | null,
  ): Promise<T> {
    // React Native's URLSearchParams is incomplete.
    const search = Object.entries(query ?? {})
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${encodeURIComponent(value!)}`)
      .join('&');
    const abort = new AbortController();
    const timer = this.#o.clock.setTimeout(() => abort.abort(), timeoutMs);
    try {
      const response = await this.#o.fetch(`${this.#o.url}/v1${path}${search && `?${search}`}`, {
        method,
        signal: abort.signal,
        headers: {
          authorization: `Bearer ${token}`,
          ...(this.#o.env === undefined ? {} : { 'chat-env': this.#o.env }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === null ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
      throw responseError(response.status, text);
    } catch (e) {
      if (e instanceof ParleyError) throw e;
      throw abort.signal.aborted ? new ParleyError('timeout') : asError(e);
    } finally {
      this.#o.clock.clearTimeout(timer);
    }
  }
}

export function responseError(status: number, text: string): ParleyError {
  try {
    const { error } = JSON.parse(text) as {
      error: { code: string; message: string; retryAfterMs?: number; requestId?: string; param?: string };
    };
    return new ParleyError(error.code, error.message, { ...error, status });
  } catch {
    // The answer is not from the service, but from a proxy in between.
    const code = status === 429 ? 'rate_limited' : status >= 500 ? 'service_unavailable' : 'invalid_request';
    return new ParleyError(code, `HTTP ${status}`, { status });
  }
}
