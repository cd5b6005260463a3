import { deepEqual, equal } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts';
import { createPushProvider } from '../../src/platform/push/create.ts';
import type { PushOutcome, PushProvider } from '../../src/platform/push/port.ts';
import { notification } from './sample.ts';
import { startExpo, type ExpoVendor } from './vendors/expo.ts';

describe('push: Expo', () => {
  let vendor: ExpoVendor;
  let outbound: Outbound;
  let provider: PushProvider;
  const send = (token = vendor.goodToken): Promise<PushOutcome> => provider.send(token, notification);

  beforeEach(async () => {
    vendor = await startExpo();
    outbound = createOutbound({ allowPrivate: true });
    provider = createPushProvider(
      vendor.credentials,
      { request: outbound.request, now: () => 0, randomBytes },
      vendor.endpoints,
    );
  });
  afterEach(async () => {
    provider.close();
    outbound.close();
    await vendor.close();
  });

  it('removes what is no Expo token without asking', async () => {
    deepEqual(await send('fcm-device:APA91b'), { kind: 'dead', reason: 'not_an_expo_token' });
    deepEqual(vendor.violations, []);
  });

  it('reads the errors of tickets', async () => {
    const error = (code: string): object => ({ status: 'error', details: { error: code } });
    vendor.nextTickets.push(
      error('MessageRateExceeded'),
      error('InvalidCredentials'),
      error('MismatchSenderId'),
      'what',
    );
    deepEqual(
      [await send(), await send(), await send(), await send()],
      [
        { kind: 'retry', reason: 'MessageRateExceeded' },
        { kind: 'rejected', reason: 'InvalidCredentials' },
        { kind: 'rejected', reason: 'MismatchSenderId' },
        { kind: 'retry', reason: 'expo_answer_unreadable' },
      ],
    );
  });

  it('learns from receipts which devices are gone', async () => {
    const sent = await send();
    deepEqual(sent, { kind: 'sent', receiptId: 'receipt-1' });
    vendor.receipts = {
      'receipt-1': { status: 'error', details: { error: 'DeviceNotRegistered' } },
      'receipt-2': { status: 'ok' },
      'receipt-9': { status: 'ok' },
    };
    const outcomes = await provider.receipts?.(['receipt-1', 'receipt-2', 'receipt-3']);
    deepEqual(
      outcomes,
      new Map([
        ['receipt-1', { kind: 'dead', reason: 'DeviceNotRegistered' }],
        ['receipt-2', { kind: 'sent' }],
      ]),
    );
  });

  it('knows nothing about receipts while Expo is in trouble', async () => {
    vendor.trouble.push({ status: 503 });
    equal((await provider.receipts?.(['receipt-1']))?.size, 0);
  });
});
