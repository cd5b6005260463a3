import { acceptsIdempotencyKey } from '../operations/define.ts';
import { errorCodes } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { Operation } from '../operations/define.ts';

const always: readonly ErrorCode[] = [
  'invalid_request',
  'unknown_field',
  'token_invalid',
  'forbidden',
  'rate_limited',
  'internal',
  'service_unavailable',
];

/** Every code that an operation may answer with: its own, and those that any call of its kind may get. */
export function operationErrors(op: Operation): ErrorCode[] {
  const codes = new Set<ErrorCode>([...always, ...op.errors]);
  if (op.callers.includes('server') || op.callers.includes('client')) codes.add('key_revoked');
  if (op.callers.includes('client')) {
    codes.add('token_expired').add('user_deactivated').add('dev_tokens_disabled');
  }
  // For the environment or the organization that the request names.
  if (op.callers.includes('dashboard') && op.scope !== 'account') codes.add('not_found');
  if (op.feature) codes.add('feature_disabled');
  if (op.recent) codes.add('reauth_required');
  if (op.body) codes.add('body_too_large');
  if (acceptsIdempotencyKey(op)) codes.add('idempotency_mismatch');
  return errorCodes.filter((code) => codes.has(code));
}
