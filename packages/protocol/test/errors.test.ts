import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, closeCodes, errorCodes, errorRow, errorTypes } from '../src/index.ts';
import type { ErrorCode } from '../src/index.ts';

/** The rows of SPEC 7, as printed: codes, type, HTTP, socket, retryable. */
const rows = `
invalid_frame | invalid_request | none | error frame | no
unknown_field | invalid_request | 400 | error frame | no
text_too_long, metadata_too_large | invalid_request | 422 | error frame | no
attachment_not_ready | invalid_request | 422 | error frame | no
idempotency_mismatch | invalid_request | 422 | none | no
token_expired | authentication | 401 | close 4001 | after refresh
token_invalid, key_revoked | authentication | 401 | close 4001 | no
forbidden, not_member | permission | 403 | error frame | no
user_deactivated, dev_tokens_disabled | permission | 403 | close 4003 | no
reauth_required | permission | 403 | none | after sign-in
not_found | not_found | 404 | error frame | no; also returned for other tenants' ids
version_conflict | conflict | 409 | error frame | after re-read
already_member | conflict | 409 | none | no
resync_required | conflict | 410 | resync_required frame | yes, reload
body_too_large, file_too_large | payload_too_large | 413 | close 1009 | no
rate_limited | rate_limited | 429 | error frame or close 4008 | after retryAfterMs
plan_limit_reached | rate_limited | 429 | close 4008 | after retryAfterMs
too_many_connections | rate_limited | none | close 4009 | no
history_unavailable | unavailable | 503 | none | yes
storage_unavailable | unavailable | 503 | none | yes
internal | internal | 500 | error frame | yes, for idempotent calls`
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [codes, type, http, socket, retryable] = line.split(' | ') as [
      string,
      string,
      string,
      string,
      string,
    ];
    return codes.split(', ').map((code) => ({ code, type, http, socket, retryable }));
  });

const socketText = (code: ErrorCode): string => {
  const { socket } = errorRow(code);
  if (socket === null) return 'none';
  if (socket === 'error') return 'error frame';
  return typeof socket === 'string' ? `${socket} frame` : `close ${socket.close}`;
};

for (const { code, type, http, socket, retryable } of rows) {
  test(`SPEC 7: ${code} has its row`, () => {
    const row = errorRow(code as ErrorCode);
    assert.equal(row?.type, type);
    assert.equal(String(row.http ?? 'none'), http);
    assert.equal(socketText(code as ErrorCode), socket.replace(' or close 4008', ''));
    assert.equal(row.retryable, retryable.replace(/[;,].*/, ''));
  });
}

test('SPEC 7: types are those listed, and codes beyond the table are the known additive ones', () => {
  assert.deepEqual(
    [...errorTypes],
    'invalid_request authentication permission not_found conflict payload_too_large rate_limited unavailable internal'.split(
      ' ',
    ),
  );
  const listed = new Set(rows.map(({ code }) => code));
  const additive = [
    'invalid_request',
    'service_unavailable',
    'calls_unavailable',
    'call_ended',
    'invalid_credentials',
    'second_factor_required',
    'method_not_allowed',
    'upgrade_required',
  ];
  assert.deepEqual(
    errorCodes.filter((code) => !listed.has(code) && !additive.includes(code)),
    [],
  );
  assert.equal(errorRow('invalid_request').http, 400, 'SPEC 7, other error cases');
});

test('SPEC 7: retryable errors carry retryAfterMs, the others do not', () => {
  for (const code of errorCodes) {
    const { retryable, retryAfterMs } = errorRow(code);
    assert.equal(retryAfterMs !== null, retryable === 'yes' || retryable === 'after retryAfterMs', code);
    assert.equal(new ApiError(code).retryAfterMs, retryAfterMs);
  }
  assert.equal(new ApiError('rate_limited', { retryAfterMs: 7 }).retryAfterMs, 7);
});

test('SPEC 7: socket close codes', () => {
  const expected: Record<number, [string, string]> = {
    1000: ['normal client disconnect', 'none'],
    1009: ['frame too large', 'fix client; do not resend that frame'],
    1012: ['server restart', 'reconnect after 0 to 5 s jitter'],
    4001: [
      'token missing, invalid or expired',
      'obtain a token once and reconnect; a second failure is final',
    ],
    4003: ['forbidden (user deactivated, environment suspended, dev token in production)', 'final'],
    4008: ['rate limited or plan connection ceiling', 'wait `retryAfterMs` given in the close reason JSON'],
    4009: ['more than 10 sockets for the user', 'oldest socket closed; no auto-reconnect'],
    4400: ['protocol violation', 'reconnect with backoff'],
  };
  const table: Record<string, { meaning: string; action: string }> = closeCodes;
  for (const [code, [meaning, action]] of Object.entries(expected)) {
    assert.deepEqual({ ...table[code] }, { meaning, action }, code);
  }
  for (const code of errorCodes) {
    const { socket } = errorRow(code);
    if (socket !== null && typeof socket === 'object') {
      assert.ok(table[socket.close], `${code} closes with a code of the table`);
    }
  }
});
