import type { ErrorCode } from './types.ts';

/** Codes of the service (SPEC 7), and those that only a client can meet. */
export type ClientErrorCode =
  | ErrorCode
  | 'network'
  | 'timeout'
  | 'disconnected'
  | 'token_provider'
  | 'blocked'
  | 'expired'
  | 'outbox_full'
  | 'closed'
  | 'aborted'
  | 'upload_refused'
  | (string & {});

export interface ErrorInfo {
  code: ClientErrorCode;
  message: string;
}

export class ParleyError extends Error {
  readonly code: ClientErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  readonly param: string | undefined;
  constructor(
    code: ClientErrorCode,
    message: string = code,
    details: { retryAfterMs?: number; requestId?: string; param?: string } = {},
  ) {
    super(message);
    this.name = 'ParleyError';
    this.code = code;
    this.retryAfterMs = details.retryAfterMs;
    this.requestId = details.requestId;
    this.param = details.param;
  }
}

export const asError = (e: unknown): ParleyError =>
  e instanceof ParleyError ? e : new ParleyError('network', e instanceof Error ? e.message : String(e));

const transient = new Set<string>([
  'network',
  'timeout',
  'token_provider',
  'rate_limited',
  'plan_limit_reached',
  'history_unavailable',
  'storage_unavailable',
  'service_unavailable',
  'internal',
]);
/** SPEC 7, Retryable. */
export const isTransient = (e: ParleyError): boolean => transient.has(e.code);

/** The conversation is not ours to read any more. */
export const isGone = (e: ParleyError): boolean =>
  e.code === 'not_member' || e.code === 'not_found' || e.code === 'forbidden';
