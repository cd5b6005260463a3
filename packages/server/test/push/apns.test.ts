import { deepEqual, equal } from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createApnsProvider, type ApnsOptions } from '../../src/platform/push/apns.ts';
import type { ApnsCredentials } from '../../src/platform/push/credentials.ts';
import type { PushOutcome, PushProvider } from '../../src/platform/push/port.ts';
import { notification } from './sample.ts';
import { startApns, type ApnsVendor } from './vendors/apns.ts';

/** What is answered at once is answered within it, on a busy machine too. */
const timeoutMs = 2_000;

describe('push: APNs', () => {
  let clock = 0;
  let vendor: ApnsVendor;
  let provider: PushProvider;
  const now = (): number => clock;
  const create = (options: ApnsOptions = {}): PushProvider =>
    createApnsProvider(
      vendor.credentials as ApnsCredentials,
      { now },
      { origin: vendor.endpoints.apns, ...options },
    );
  const send = (token = vendor.goodToken): Promise<PushOutcome> => provider.send(token, notification);
  const held = (count: number): Promise<void> =>
    new Promise((resolve) => {
      vendor.onHeld = () => {
        if (vendor.held.length === count) resolve();
      };
    });

  beforeEach(async () => {
    clock = Date.parse('2030-05-01T12:00:00Z');
    vendor = await startApns(now);
    provider = create();
  });
  afterEach(async () => {
    provider.close();
    await vendor.close();
  });

  it('sends everything over one session', async () => {
    await Promise.all(Array.from({ length: 50 }, () => send()));
    await send();
    equal(vendor.delivered.length, 51);
    equal(vendor.sessionsSeen, 1);
  });

  it('keeps its token for 40 minutes: Apple wants 20 to 60', async () => {
    await send();
    clock += 40 * 60_000 - 1;
    await send();
    equal(vendor.proofs.size, 1);
    clock += 1;
    await send();
    equal(vendor.proofs.size, 2);
    deepEqual(vendor.violations, []);
  });

  it('makes a new token and tries once more where Apple calls the present one expired', async () => {
    await send();
    vendor.expireTokens();
    deepEqual(await Promise.all([send(), send(), send()]), Array(3).fill({ kind: 'sent' }));
    equal(vendor.proofs.size, 2, 'one new token for all');
    deepEqual(vendor.violations, []);
  });

  it('gives up where Apple calls the new token expired too', async () => {
    vendor.allExpired = true;
    deepEqual(await send(), { kind: 'rejected', reason: 'ExpiredProviderToken' });
    equal(vendor.proofs.size, 2);
  });

  it('makes a new token where the clock was set back', async () => {
    await send();
    clock -= 3600_000;
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.proofs.size, 2);
  });

  it('after GOAWAY what is under way ends and the next push opens a new session', async () => {
    vendor.hold = true;
    const waiting = held(1);
    const underWay = send();
    await waiting;
    vendor.goaway();
    vendor.hold = false;
    vendor.held.forEach((respond) => respond());
    deepEqual(await underWay, { kind: 'sent' });
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.sessionsSeen, 2);
  });

  it('a session that the other side leaves open after GOAWAY ends here', async () => {
    provider.close();
    provider = create({ timeoutMs });
    const sockets: Socket[] = [];
    const opened = (message: unknown): unknown => sockets.push((message as { socket: Socket }).socket);
    subscribe('net.client.socket', opened);
    deepEqual(await send(), { kind: 'sent' });
    unsubscribe('net.client.socket', opened);
    equal(sockets.length, 1);
    const ended = once(sockets[0] as Socket, 'close');
    vendor.goaway();
    await ended;
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.sessionsSeen, 2);
  });

  it('a push whose connection breaks is tried again later, over a new connection', async () => {
    vendor.hold = true;
    const waiting = held(1);
    const underWay = send();
    await waiting;
    vendor.drop();
    equal((await underWay).kind, 'retry');
    vendor.hold = false;
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.sessionsSeen, 2);
  });

  it('a connection without answers is given up', async () => {
    provider.close();
    provider = create({ timeoutMs });
    vendor.hold = true;
    deepEqual(await send(), { kind: 'retry', reason: 'timeout' });
    vendor.hold = false;
    deepEqual(await send(), { kind: 'sent' });
    equal(vendor.sessionsSeen, 2);
  });

  it('has a bound on what is under way', async () => {
    provider.close();
    provider = create({ maxInFlight: 2 });
    vendor.hold = true;
    const waiting = held(2);
    const underWay = [send(), send()];
    deepEqual(await send(), { kind: 'retry', reason: 'too_many_in_flight', retryAfterMs: 1000 });
    await waiting;
    vendor.hold = false;
    vendor.held.forEach((respond) => respond());
    deepEqual(await Promise.all(underWay), [{ kind: 'sent' }, { kind: 'sent' }]);
    deepEqual(await send(), { kind: 'sent' });
  });

  it('keeps a token that Apple calls bad: it may be of the other environment', async () => {
    deepEqual(await send('ee'.repeat(32)), { kind: 'rejected', reason: 'BadDeviceToken' });
    deepEqual(vendor.violations, []);
  });

  it('removes what is no token without asking', async () => {
    deepEqual(await send('../../x'), { kind: 'dead', reason: 'not_an_apns_token' });
    deepEqual(vendor.violations, []);
  });

  it('an incoming call is a VoIP push where the device has a VoIP token; a missed one is an alert', async () => {
    const call = (type: 'incoming' | 'missed', voipToken: string): Promise<PushOutcome> =>
      provider.send(
        vendor.goodToken,
        { ...notification, title: 'Ada', body: 'A call', call: type },
        voipToken,
      );
    deepEqual(await call('incoming', vendor.voipToken), { kind: 'sent' });
    deepEqual(await call('missed', vendor.voipToken), { kind: 'sent' });
    const [incoming, missed] = vendor.delivered;
    equal(incoming!.token, vendor.voipToken);
    deepEqual(incoming!.apple, {
      type: 'voip',
      priority: '10',
      topic: 'com.example.chat.voip',
      category: undefined,
      alert: undefined,
    });
    deepEqual(incoming!.data, { ...notification.data, title: 'Ada', body: 'A call' });
    deepEqual([missed!.token, missed!.apple!.type], [vendor.goodToken, 'alert']);
    deepEqual(vendor.violations, []);
  });

  it('an incoming call whose VoIP token is refused is an alert', async () => {
    const outcome = await provider.send(
      vendor.goodToken,
      { ...notification, call: 'incoming' },
      'ab'.repeat(32),
    );
    deepEqual(outcome, { kind: 'sent' });
    deepEqual(
      vendor.delivered.map((d) => [d.token, d.apple!.type]),
      [[vendor.goodToken, 'alert']],
    );
  });

  it('keeps the device where the topic is wrong', async () => {
    provider.close();
    const credentials = { ...(vendor.credentials as ApnsCredentials), topic: 'com.example.other' };
    provider = createApnsProvider(credentials, { now }, { origin: vendor.endpoints.apns });
    deepEqual(await send(), { kind: 'rejected', reason: 'TopicDisallowed' });
  });
});
