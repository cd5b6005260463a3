export interface ParleyErrorFields {
  type: string;
  code: string;
  message: string;
  param?: string;
  requestId?: string;
  retryAfterMs?: number;
  /** The HTTP status; 0 if there was no answer. */
  status: number;
  cause?: unknown;
}

/** The error that every method rejects with. `code` is one of the service's, or `network_error` / `unexpected_response`. */
export class ParleyError extends Error {
  readonly type: string;
  readonly code: string;
  readonly param: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly status: number;
  constructor(fields: ParleyErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = 'ParleyError';
    this.type = fields.type;
    this.code = fields.code;
    this.param = fields.param;
    this.requestId = fields.requestId;
    this.retryAfterMs = fields.retryAfterMs;
    this.status = fields.status;
  }
}

/** Reads an error answer; an answer that is not from the service (a proxy's page) still becomes a ParleyError. */
export function errorFrom(response: Response, body: unknown, now: number): ParleyError {
  const error = (body as { error?: Partial<ParleyErrorFields> } | null)?.error;
  const retryAfterMs = error?.retryAfterMs ?? retryAfter(response.headers.get('retry-after'), now);
  return new ParleyError({
    type: error?.type ?? (response.status >= 500 ? 'unavailable' : 'invalid_request'),
    code: error?.code ?? 'unexpected_response',
    message: error?.message ?? `The service answered ${response.status} without an error body.`,
    param: error?.param,
    requestId: error?.requestId ?? response.headers.get('request-id') ?? undefined,
    retryAfterMs,
    status: response.status,
  });
}

/** Retry-After: seconds or an HTTP date. */
function retryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
