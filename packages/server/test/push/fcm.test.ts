import { deepEqual, equal } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts';
import { createPushProvider } from '../../src/platform/push/create.ts';
import type { PushOutcome, PushProvider } from '../../src/platform/push/port.ts';
import { notification } from './sample.ts';
import { fcmError, startFcm, type FcmVendor } from './vendors/fcm.ts';

describe('push: FCM', () => {
  let clock = 0;
  let vendor: FcmVendor;
  let outbound: Outbound;
  let provider: PushProvider;
  const send = (token = vendor.goodToken): Promise<PushOutcome> => provider.send(token, notification);

  beforeEach(async () => {
    clock = Date.parse('2030-05-01T12:00:00Z');
    const now = (): number => clock;
    vendor = await startFcm(now);
    outbound = createOutbound({ allowPrivate: true });
    provider = createPushProvider(
      vendor.credentials,
      { request: outbound.request, now, randomBytes },
      vendor.endpoints,
    );
  });
  afterEach(async () => {
    provider.close();
    outbound.close();
    await vendor.close();
  });

  it('asks for one access token although many pushes want it at once, and the next a minute before it ends', async () => {
    await Promise.all(Array.from({ length: 20 }, () => send()));
    equal(vendor.oauthCalls, 1);
    clock += 3599_000 - 60_001;
    await send();
    equal(vendor.oauthCalls, 1);
    clock += 1;
    await Promise.all(Array.from({ length: 20 }, () => send()));
    equal(vendor.oauthCalls, 2);
  });

  it('takes a new access token once when Google ended the old one early', async () => {
    await send();
    vendor.revoke();
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.oauthCalls, 2);
  });

  it('gives up when a new access token is refused too', async () => {
    const refused = { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } };
    vendor.nextErrors.push(refused, refused, refused);
    deepEqual(await send(), { kind: 'rejected', reason: 'UNAUTHENTICATED' });
    equal(vendor.nextErrors.length, 1);
    equal(vendor.oauthCalls, 2);
  });

  it('keeps its access token where the customer’s APNs key or VAPID key at Google is wrong', async () => {
    // "THIRD_PARTY_AUTH_ERROR (HTTP 401): APNs certificate or web push auth key was invalid or missing."
    vendor.nextErrors.push(fcmError(401, 'THIRD_PARTY_AUTH_ERROR', 'auth error'));
    deepEqual(await send(), { kind: 'rejected', reason: 'THIRD_PARTY_AUTH_ERROR' });
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.oauthCalls, 1);
  });

  it('backs off when the token endpoint is in trouble, and asks again the next time', async () => {
    vendor.oauthTrouble.push({ status: 503, retryAfter: '5' });
    deepEqual(await send(), { kind: 'retry', reason: 'http_503', retryAfterMs: 5000 });
    deepEqual(await send(), { kind: 'sent' });
  });

  it('INVALID_ARGUMENT removes the device only where the token is what is wrong', async () => {
    const violation = {
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field: 'message.token' }],
    };
    const other = { ...violation, fieldViolations: [{ field: 'message.data[0].value' }] };
    vendor.nextErrors.push(
      fcmError(400, 'INVALID_ARGUMENT', 'The registration token is not a valid FCM registration token'),
      fcmError(400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.', [violation]),
      fcmError(400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.', [other]),
    );
    const kinds = [await send(), await send(), await send()].map((outcome) => outcome.kind);
    deepEqual(kinds, ['dead', 'dead', 'rejected']);
  });

  it('a 404 that is not about the token, and a token of another project, keep the device', async () => {
    vendor.nextErrors.push(
      { status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } },
      fcmError(403, 'SENDER_ID_MISMATCH', 'SenderId mismatch'),
    );
    deepEqual(await send(), { kind: 'rejected', reason: 'NOT_FOUND' });
    deepEqual(await send(), { kind: 'rejected', reason: 'SENDER_ID_MISMATCH' });
  });

  it('waits a minute after a 429 without Retry-After, as FCM asks, and at most an hour with one', async () => {
    vendor.nextErrors.push(fcmError(429, 'QUOTA_EXCEEDED', 'quota'), {
      ...fcmError(429, 'QUOTA_EXCEEDED', 'quota'),
      headers: { 'retry-after': '999999' },
    });
    deepEqual(await send(), { kind: 'retry', reason: 'QUOTA_EXCEEDED', retryAfterMs: 60_000 });
    deepEqual(await send(), { kind: 'retry', reason: 'QUOTA_EXCEEDED', retryAfterMs: 3600_000 });
  });
});
