import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, closeCodes, errorCodes, errorRow } from '../src/index.ts';

test('errors#retryable: retryable errors carry retryAfterMs, the others do not', () => {
  for (const code of errorCodes) {
    const { retryable, retryAfterMs } = errorRow(code);
    // A silence without an end has no such time.
    if (code !== 'restricted')
      assert.equal(retryAfterMs !== null, retryable === 'yes' || retryable === 'after retryAfterMs', code);
    assert.equal(new ApiError(code).retryAfterMs, retryAfterMs);
  }
  assert.equal(new ApiError('rate_limited', { retryAfterMs: 7 }).retryAfterMs, 7);
});

test('errors#codes: what closes a socket closes it with a code of the table', () => {
  for (const code of errorCodes) {
    const { socket } = errorRow(code);
    if (socket !== null && typeof socket === 'object') assert.ok(socket.close in closeCodes, code);
  }
});
