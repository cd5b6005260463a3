/** errors#codes: one row per code. Everything about errors is derived from this table. */

export const errorTypes = [
  'invalid_request',
  'authentication',
  'permission',
  'not_found',
  'conflict',
  'payload_too_large',
  'rate_limited',
  'unavailable',
  'internal',
] as const;
export type ErrorType = (typeof errorTypes)[number];

export interface ErrorRow {
  type: ErrorType;
  /** The HTTP status; null if it is never sent over REST. */
  http: number | null;
  /** How it appears on the socket: an error frame (the connection is kept), a close code, a separate frame, or never. */
  socket: 'error' | 'resync_required' | { close: number } | null;
  retryable: 'no' | 'yes' | 'after refresh' | 'after sign-in' | 'after re-read' | 'after retryAfterMs';
  /** The default of `retryAfterMs` in milliseconds, if the error was raised without one; null if it has none. */
  retryAfterMs: number | null;
  text: string;
}

const row = (
  type: ErrorType,
  http: number | null,
  socket: ErrorRow['socket'],
  retryable: ErrorRow['retryable'],
  text: string,
  retryAfterMs: number | null = null,
): ErrorRow => ({ type, http, socket, retryable, retryAfterMs, text });

export const errors = {
  invalid_frame: row('invalid_request', null, 'error', 'no', 'The frame is not one of chat.v1.'),
  invalid_request: row(
    'invalid_request',
    400,
    'error',
    'no',
    'The request breaks a rule; `param` names the field.',
  ),
  unknown_field: row('invalid_request', 400, 'error', 'no', 'The request has a field that does not exist.'),
  text_too_long: row('invalid_request', 422, 'error', 'no', 'The text is longer than 5,000 characters.'),
  metadata_too_large: row(
    'invalid_request',
    422,
    'error',
    'no',
    'The metadata is over 4 KB or nested deeper than 5 levels.',
  ),
  attachment_not_ready: row(
    'invalid_request',
    422,
    'error',
    'no',
    'An attachment is not ready: its upload was not completed.',
  ),
  idempotency_mismatch: row(
    'invalid_request',
    422,
    null,
    'no',
    'This Idempotency-Key was used with a different request.',
  ),
  token_expired: row(
    'authentication',
    401,
    { close: 4001 },
    'after refresh',
    'The token has expired: get a new one and retry once.',
  ),
  token_invalid: row('authentication', 401, { close: 4001 }, 'no', 'The credential is missing or not valid.'),
  key_revoked: row(
    'authentication',
    401,
    { close: 4001 },
    'no',
    'The secret key, or the key that signed this token, was revoked.',
  ),
  invalid_credentials: row(
    'authentication',
    401,
    null,
    'no',
    'The e-mail address, the password or the code is wrong.',
  ),
  second_factor_required: row(
    'authentication',
    401,
    null,
    'no',
    'The password is right; this account also needs a code or a passkey.',
  ),
  forbidden: row('permission', 403, 'error', 'no', 'The caller may not do this.'),
  not_member: row('permission', 403, 'error', 'no', 'The user is not a member of the conversation.'),
  feature_disabled: row('permission', 403, 'error', 'no', 'The feature is off in this environment.'),
  blocked: row('permission', 403, 'error', 'no', 'One of the two users has blocked the other.'),
  restricted: row(
    'permission',
    403,
    'error',
    'after retryAfterMs',
    'The user is silenced or banned; `retryAfterMs` says for how long, if it ends.',
  ),
  message_rejected: row(
    'permission',
    403,
    'error',
    'no',
    'A word list or the before-send hook refused the message; `message` has the reason.',
  ),
  user_deactivated: row('permission', 403, { close: 4003 }, 'no', 'The user is deactivated.'),
  dev_tokens_disabled: row(
    'permission',
    403,
    { close: 4003 },
    'no',
    'Development tokens are not accepted in this environment.',
  ),
  reauth_required: row(
    'permission',
    403,
    null,
    'after sign-in',
    'Sign in again: this needs a sign-in within the last 15 minutes.',
  ),
  method_not_allowed: row(
    'invalid_request',
    405,
    null,
    'no',
    'The path does not support this method; the header Allow lists the supported methods.',
  ),
  upgrade_required: row(
    'invalid_request',
    426,
    null,
    'no',
    'The socket speaks WebSocket version 13 (RFC 6455) only.',
  ),
  not_found: row('not_found', 404, 'error', 'no', 'Not found.'),
  version_conflict: row('conflict', 409, 'error', 'after re-read', 'The message has changed: read it again.'),
  already_member: row('conflict', 409, null, 'no', 'The user is already a member.'),
  call_ended: row('conflict', 409, 'error', 'no', 'The call has already ended.'),
  limit_reached: row('conflict', 409, 'error', 'no', 'A limit of this object is reached; `param` names it.'),
  state_conflict: row(
    'conflict',
    409,
    'error',
    'after re-read',
    'The object has ended or changed; `details` has its current state.',
  ),
  resync_required: row(
    'conflict',
    410,
    'resync_required',
    'yes',
    'The events are no longer kept: reload the latest page.',
    0,
  ),
  body_too_large: row('payload_too_large', 413, { close: 1009 }, 'no', 'The request body is over 64 KB.'),
  file_too_large: row('payload_too_large', 413, { close: 1009 }, 'no', 'The file is over 25 MB.'),
  rate_limited: row(
    'rate_limited',
    429,
    'error',
    'after retryAfterMs',
    'Too many requests: slow down.',
    1_000,
  ),
  plan_limit_reached: row(
    'rate_limited',
    429,
    { close: 4008 },
    'after retryAfterMs',
    'A limit of the plan is reached.',
    60_000,
  ),
  too_many_connections: row(
    'rate_limited',
    null,
    { close: 4009 },
    'no',
    'The user has more than 10 sockets; the oldest was closed.',
  ),
  history_unavailable: row('unavailable', 503, null, 'yes', 'The history database cannot be reached.', 5_000),
  storage_unavailable: row(
    'unavailable',
    503,
    null,
    'yes',
    'The media storage cannot be reached or is not configured.',
    5_000,
  ),
  calls_unavailable: row('unavailable', 503, 'error', 'yes', 'No media server is available.', 5_000),
  hook_unavailable: row(
    'unavailable',
    503,
    'error',
    'yes',
    'The before-send hook did not answer, and the environment accepts no messages without its answer.',
    1_000,
  ),
  service_unavailable: row(
    'unavailable',
    503,
    'error',
    'yes',
    'The service cannot reach its store at the moment.',
    1_000,
  ),
  internal: row('internal', 500, 'error', 'yes', 'Something went wrong on our side.', 1_000),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errors;
export const errorCodes = Object.keys(errors) as ErrorCode[];
export const errorRow = (code: ErrorCode): ErrorRow => errors[code];

export interface ErrorDetails {
  message?: string;
  param?: string;
  retryAfterMs?: number;
  /** Data for programs besides the code. */
  details?: Record<string, unknown>;
}

/** The only exception that operations throw; every binding turns it into its own form. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterMs: number | null;
  readonly details: Record<string, unknown> | undefined;
  constructor(code: ErrorCode, given: ErrorDetails = {}) {
    super(given.message ?? errors[code].text);
    this.name = 'ApiError';
    this.code = code;
    this.param = given.param;
    this.retryAfterMs = given.retryAfterMs ?? errorRow(code).retryAfterMs;
    this.details = given.details;
  }
  get row(): ErrorRow {
    return errors[this.code];
  }
}

/** errors#close-codes. */
export const closeCodes = {
  1000: { meaning: 'normal client disconnect', action: 'none' },
  1001: { meaning: 'no frame for 60 s', action: 'reconnect with backoff' },
  1009: { meaning: 'frame too large', action: 'fix client; do not resend that frame' },
  1012: { meaning: 'server restart', action: 'reconnect after 0 to 5 s jitter' },
  1013: { meaning: 'the socket could not keep up', action: 'reconnect with backoff, then sync' },
  4001: {
    meaning: 'token missing, invalid or expired',
    action: 'obtain a token once and reconnect; a second failure is final',
  },
  4003: {
    meaning: 'forbidden (user deactivated, environment suspended, dev token in production)',
    action: 'final',
  },
  4008: {
    meaning: 'rate limited or plan connection ceiling',
    action: 'wait `retryAfterMs` given in the close reason JSON',
  },
  4009: { meaning: 'more than 10 sockets for the user', action: 'oldest socket closed; no auto-reconnect' },
  4400: { meaning: 'protocol violation', action: 'reconnect with backoff' },
} as const;
export type CloseCode = keyof typeof closeCodes;
