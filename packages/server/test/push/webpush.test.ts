import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts';
import { createPushProvider } from '../../src/platform/push/create.ts';
import type { PushNotification, PushOutcome, PushProvider } from '../../src/platform/push/port.ts';
import { encryptPayload } from '../../src/platform/push/webpush-encryption.ts';
import { notification } from './sample.ts';
import { decrypt, startWebpush, type WebpushVendor } from './vendors/webpush.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'base64url');

describe('push: Web Push', () => {
  let vendor: WebpushVendor;
  let outbound: Outbound;
  let provider: PushProvider;
  const now = (): number => Date.parse('2030-05-01T12:00:00Z');
  const create = (guard: Outbound): PushProvider =>
    createPushProvider(vendor.credentials, { request: guard.request, now, randomBytes });
  const send = (token = vendor.goodToken, changes: Partial<PushNotification> = {}): Promise<PushOutcome> =>
    provider.send(token, { ...notification, ...changes });

  beforeEach(async () => {
    vendor = await startWebpush(now);
    outbound = createOutbound({ allowPrivate: true });
    provider = create(outbound);
  });
  afterEach(async () => {
    provider.close();
    outbound.close();
    await vendor.close();
  });

  it('RFC 8291 appendix A: the example message', () => {
    const auth = bytes('BTBZMqHH6r4Tts7J_aSIgg');
    const message = encryptPayload(
      bytes('V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24'),
      {
        endpoint: 'https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV',
        p256dh: bytes(
          'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        ),
        auth,
      },
      bytes('DGv6ra1nlYgDCS1FRnbzlw'),
      bytes('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'),
    );
    equal(
      message.toString('base64url'),
      'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    );
    const plaintext = decrypt(message, bytes('q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'), auth);
    equal(plaintext.toString(), 'When I grow up, I want to be a watermelon');
  });

  it('sends a shorter body once where the service answers 413', async () => {
    vendor.maxBodyBytes = 3000;
    const body = 'long '.repeat(1000);
    deepEqual(await send(vendor.goodToken, { body }), { kind: 'sent' });
    const shown = vendor.delivered[0]?.body ?? '';
    ok(shown.endsWith('…') && body.startsWith(shown.slice(0, -1)) && shown.length > 1000);
  });

  it('gives up where even that is too large', async () => {
    vendor.maxBodyBytes = 100;
    deepEqual(await send(), { kind: 'rejected', reason: 'payload_too_large' });
    deepEqual(await send(vendor.goodToken, { body: 'long '.repeat(1000) }), {
      kind: 'rejected',
      reason: 'payload_too_large',
    });
  });

  it('an unknown subscription is dead', async () => {
    deepEqual(await send(vendor.goodToken.replace('/push/good', '/push/nobody')), {
      kind: 'dead',
      reason: 'http_404',
    });
  });

  it('what is no subscription is dead, without a request', async () => {
    const changed = (change: object): string =>
      JSON.stringify({ ...(JSON.parse(vendor.goodToken) as object), ...change });
    const keys = (JSON.parse(vendor.goodToken) as { keys: { p256dh: string; auth: string } }).keys;
    const offCurve = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]).toString('base64url');
    const tokens = [
      'nothing',
      'null',
      '[]',
      '{}',
      changed({ endpoint: 'not a url' }),
      changed({ endpoint: 5 }),
      changed({ keys: { ...keys, auth: 'AAAA' } }),
      changed({ keys: { ...keys, p256dh: keys.auth } }),
      changed({ keys: { ...keys, p256dh: offCurve } }),
    ];
    for (const token of tokens) deepEqual(await send(token), { kind: 'dead', reason: 'not_a_subscription' });
    equal(vendor.proofs.size, 0);
  });

  it('an endpoint the outbound guard refuses is dead: a client typed it', async () => {
    const guard = createOutbound({ allowPrivate: false });
    const guarded = create(guard);
    const outcomes = [];
    for (const endpoint of ['https://169.254.169.254/latest', 'https://[::1]/x', 'http://127.0.0.1:1/x']) {
      const token = JSON.stringify({ ...(JSON.parse(vendor.goodToken) as object), endpoint });
      outcomes.push(await guarded.send(token, notification));
    }
    guarded.close();
    guard.close();
    deepEqual(outcomes, Array(3).fill({ kind: 'dead', reason: 'address_refused' }));
  });

  it('encrypts every message with a key of its own', async () => {
    const used: number[] = [];
    const counting = createPushProvider(vendor.credentials, {
      request: outbound.request,
      now,
      randomBytes: (size) => {
        used.push(size);
        return randomBytes(size);
      },
    });
    await counting.send(vendor.goodToken, notification);
    await counting.send(vendor.goodToken, notification);
    deepEqual(used, [16, 32, 16, 32]);
  });
});
