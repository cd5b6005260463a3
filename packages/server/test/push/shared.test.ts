import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts';
import { createPushProvider } from '../../src/platform/push/create.ts';
import type { PushCredentials } from '../../src/platform/push/credentials.ts';
import type {
  PushNotification,
  PushOutcome,
  PushProvider,
  PushProviderName,
} from '../../src/platform/push/port.ts';
import { notification } from './sample.ts';
import { startApns } from './vendors/apns.ts';
import { startExpo } from './vendors/expo.ts';
import { startFcm } from './vendors/fcm.ts';
import type { Vendor } from './vendors/vendor.ts';
import { startWebpush } from './vendors/webpush.ts';

const start: Record<PushProviderName, (now: () => number) => Promise<Vendor>> = {
  fcm: startFcm,
  apns: startApns,
  expo: startExpo,
  webpush: startWebpush,
};

for (const name of Object.keys(start) as PushProviderName[]) {
  describe(`push provider ${name}`, () => {
    let clock = 0;
    let vendor: Vendor;
    let outbound: Outbound;
    let provider: PushProvider;
    const now = (): number => clock;
    const create = (credentials: PushCredentials): PushProvider =>
      createPushProvider(credentials, { request: outbound.request, now, randomBytes }, vendor.endpoints);
    const send = (changes: Partial<PushNotification> = {}, token = vendor.goodToken): Promise<PushOutcome> =>
      provider.send(token, { ...notification, ...changes });

    beforeEach(async () => {
      clock = Date.parse('2030-05-01T12:00:00Z');
      vendor = await start[name](now);
      outbound = createOutbound({ allowPrivate: true });
      provider = create(vendor.credentials);
    });
    afterEach(async () => {
      provider.close();
      outbound.close();
      await vendor.close();
    });

    it('delivers title, body, badge, data, priority and time to live, by the rules of the vendor', async () => {
      equal((await send()).kind, 'sent');
      deepEqual(vendor.violations, []);
      deepEqual(vendor.delivered, [
        {
          token: vendor.goodToken,
          title: notification.title,
          body: notification.body,
          badge: 7,
          collapse: notification.collapseKey,
          data: notification.data,
          priority: 'high',
          ttlSeconds: 3600,
        },
      ]);
    });

    it('delivers normal priority and a time to live of zero', async () => {
      equal((await send({ priority: 'normal', ttlSeconds: 0 })).kind, 'sent');
      deepEqual(vendor.violations, []);
      deepEqual([vendor.delivered[0]?.priority, vendor.delivered[0]?.ttlSeconds], ['normal', 0]);
    });

    it('push#data-only: empty title and body make a data-only push', async () => {
      const data = { type: 'call.incoming', callId: 'call_1' };
      equal((await send({ title: '', body: '', data, ttlSeconds: 45 })).kind, 'sent');
      deepEqual(vendor.violations, []);
      const [delivered] = vendor.delivered;
      deepEqual([delivered?.title, delivered?.body, delivered?.data], [undefined, undefined, data]);
      equal(delivered?.ttlSeconds, 45);
    });

    it('an incoming or missed call has a text; on iOS it is an alert of priority 10 with its category', async () => {
      for (const call of ['incoming', 'missed'] as const) {
        const data = { type: `call.${call}`, callId: 'call_1' };
        equal((await send({ title: 'Ada', body: 'A call', data, call, ttlSeconds: 45 })).kind, 'sent');
        const delivered = vendor.delivered.pop()!;
        equal(delivered.priority, 'high');
        if (name === 'fcm') {
          // Android's app rings by itself: a notification of the system would keep it asleep.
          deepEqual([delivered.title, delivered.body], [undefined, undefined]);
          deepEqual(delivered.data, { ...data, title: 'Ada', body: 'A call' });
        } else {
          deepEqual([delivered.title, delivered.body], ['Ada', 'A call']);
          deepEqual(delivered.data, data);
        }
        if (name === 'webpush') continue;
        const { type, priority, category, alert } = delivered.apple!;
        deepEqual(
          { type, priority, category, alert },
          {
            type: 'alert',
            priority: '10',
            category: `call.${call}`,
            alert: { title: 'Ada', body: 'A call' },
          },
        );
      }
      deepEqual(vendor.violations, []);
    });

    it('keeps long collapse keys apart within the limit of the vendor', async () => {
      const long = (end: string): string => `conv_dm_${'k'.repeat(90)}${end}`;
      for (const collapseKey of [long('a'), long('a'), long('b')])
        equal((await send({ collapseKey })).kind, 'sent');
      deepEqual(vendor.violations, []);
      const [first, second, third] = vendor.delivered.map((one) => one.collapse);
      equal(first, second);
      ok(first !== third);
      ok((first ?? '').length <= vendor.maxCollapse);
    });

    it('shortens a long body to the size the vendor takes, on a code point boundary', async () => {
      const body = '👩‍👩‍👧 "quoted"\n'.repeat(600);
      equal((await send({ body })).kind, 'sent');
      deepEqual(vendor.violations, []);
      const shown = vendor.delivered[0]?.body ?? '';
      ok(shown.endsWith('…') && shown.isWellFormed());
      ok(body.startsWith(shown.slice(0, -1)));
      ok(Buffer.byteLength(shown) > 2000, 'not shortened more than needed');
    });

    it('refuses to send data that can never fit', async () => {
      const data = { blob: 'x'.repeat(5000) };
      deepEqual(await send({ data }), { kind: 'rejected', reason: 'payload_too_large' });
      deepEqual(vendor.delivered, []);
    });

    it('says so when the token is gone', async () => {
      equal((await send({}, vendor.deadToken)).kind, 'dead');
      deepEqual(vendor.violations, []);
    });

    it('backs off for as long as Retry-After says, in seconds or as a date', async () => {
      vendor.trouble.push(
        { status: 429, retryAfter: '7' },
        { status: 503, retryAfter: new Date(clock + 30_000).toUTCString() },
        { status: 503 },
      );
      const outcomes = [await send(), await send(), await send()];
      deepEqual(
        outcomes.map((outcome) => (outcome.kind === 'retry' ? outcome.retryAfterMs : outcome)),
        [7000, 30_000, undefined],
      );
      equal((await send()).kind, 'sent');
    });

    it('is rejected with credentials the vendor does not know, and the token stays', async () => {
      const other = create(vendor.wrongCredentials);
      const outcome = await other.send(vendor.goodToken, notification);
      other.close();
      equal(outcome.kind, 'rejected');
      deepEqual(vendor.delivered, []);
      deepEqual(vendor.violations, []);
    });

    it('proves who it is once for many pushes, and again before the proof ends', async () => {
      const outcomes = await Promise.all(Array.from({ length: 40 }, () => send()));
      ok(outcomes.every((outcome) => outcome.kind === 'sent'));
      equal(vendor.proofs.size, 1);
      if (vendor.proofLifeMs === undefined) return;
      clock += vendor.proofLifeMs / 4;
      equal((await send()).kind, 'sent');
      equal(vendor.proofs.size, 1);
      clock += (vendor.proofLifeMs * 3) / 4 - 1000;
      equal((await send()).kind, 'sent');
      equal(vendor.proofs.size, 2);
      deepEqual(vendor.violations, []);
    });

    it('recovers from lost connections', async () => {
      equal((await send()).kind, 'sent');
      vendor.drop();
      // The loss may be noticed by this very push; then it is the vendor's trouble, not the token's.
      const next = await send();
      ok(next.kind === 'sent' || next.kind === 'retry');
      equal((await send()).kind, 'sent');
    });

    it('answers with back-off when nobody listens, without naming the address', async () => {
      await vendor.close();
      const outcome = await send();
      equal(outcome.kind, 'retry');
      match(outcome.kind === 'retry' ? outcome.reason : '', /^[\w.-]+$/);
    });
  });
}
