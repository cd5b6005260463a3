import type { ErrorCode } from './types.ts';

/** Codes of the service (errors#codes), and those that only occur in a client. */
export type ClientErrorCode =
  | ErrorCode
  | 'network'
  | 'timeout'
  | 'disconnected'
  | 'token_provider'
  | 'blocked'
  | 'expired'
  | 'outbox_full'
  | 'aborted'
  | 'upload_refused'
  | 'calls_not_installed'
  | (string & {});

export interface ErrorInfo {
  code: ClientErrorCode;
  message: string;
  /** When it may work again, in milliseconds, if that is known. */
  retryAfterMs?: number;
}

const texts: Record<string, string> = {
  network: 'The service cannot be reached.',
  timeout: 'The service did not answer in time.',
  disconnected: 'There is no connection.',
  aborted: 'The upload was aborted.',
  outbox_full: 'Too many messages wait to be sent.',
};

export class ParleyError extends Error {
  readonly code: ClientErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  readonly param: string | undefined;
  /** The HTTP status, if the error is an HTTP answer. */
  readonly status: number | undefined;
  constructor(
    code: ClientErrorCode,
    message?: string,
    details: { retryAfterMs?: number; requestId?: string; param?: string; status?: number } = {},
  ) {
    super(message || texts[code] || code);
    this.name = 'ParleyError';
    this.code = code;
    this.retryAfterMs = details.retryAfterMs;
    this.requestId = details.requestId;
    this.param = details.param;
    this.status = details.status;
  }
}

/** Node's "fetch failed" says in its cause what went wrong. */
export const messageOf = (e: unknown): string => {
  const { message, cause } = e as Partial<Error>;
  return (cause as Error | undefined)?.message || message || String(e);
};
export const asError = (e: unknown): ParleyError =>
  e instanceof ParleyError ? e : new ParleyError('network', messageOf(e));

const transient = new Set<string>([
  'network',
  'timeout',
  'token_provider',
  'rate_limited',
  'plan_limit_reached',
  'history_unavailable',
  'storage_unavailable',
  'service_unavailable',
  'hook_unavailable',
  'internal',
]);
/** errors#retryable. */
export const isTransient = (e: ParleyError): boolean => transient.has(e.code);

/** True if the user may no longer read the conversation. */
export const isGone = (e: ParleyError): boolean =>
  e.code === 'not_member' || e.code === 'not_found' || e.code === 'forbidden';
