import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, WebhookVerificationError } from '../src/index.ts';
import type { WebhookHeaders } from '../src/index.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const event = { id: 'evt_1', type: 'message.created', createdAt: 'x', env: 'env_1', data: { text: 'é ✓' } };
const body = JSON.stringify(event);
const seconds = 1_768_469_400;
const now = () => seconds * 1000 + 999;

const sign = (key = secret, at = seconds, raw = body) =>
  new Webhook(key).sign('evt_1', new Date(at * 1000), raw);
const headers = (more: Record<string, string | undefined> = {}) => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(seconds),
  'webhook-signature': sign(),
  ...more,
});
const refused = (given: WebhookHeaders, raw: string | Uint8Array = body, key = secret) =>
  assert.throws(() => verifyWebhook(raw, given, key, { now }), WebhookVerificationError);

test('webhooks#signature: what the standardwebhooks package signs is accepted, as text and as bytes', () => {
  assert.deepEqual(verifyWebhook(body, headers(), secret, { now }), event);
  assert.deepEqual(verifyWebhook(Buffer.from(body), headers(), secret, { now }), event);
  assert.deepEqual(verifyWebhook(new TextEncoder().encode(body), headers(), secret, { now }), event);
});

test('webhooks#signature: what we accept, the standardwebhooks package accepts, for random secrets and bodies', () => {
  for (let i = 0; i < 50; i++) {
    const bytes = randomBytes(24 + i);
    const key = `whsec_${bytes.toString('base64')}`;
    const raw = JSON.stringify({ at: i, noise: randomBytes(i).toString('base64') });
    const at = Math.floor(Date.now() / 1000);
    const signature = createHmac('sha256', bytes).update(`evt_${i}.${at}.${raw}`).digest('base64');
    const given = {
      'webhook-id': `evt_${i}`,
      'webhook-timestamp': String(at),
      'webhook-signature': `v1,${signature}`,
    };
    assert.deepEqual(verifyWebhook(raw, given, key), new Webhook(key).verify(raw, given));
  }
});

test('the Standard Webhooks vector', () => {
  const key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const raw = '{"test": 2432232314}';
  const given = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  assert.deepEqual(verifyWebhook(raw, given, key, { now: () => 1_614_265_330_000 }), { test: 2432232314 });
});

test('header names are case-insensitive; Headers, objects and arrays are taken', () => {
  const signature = sign();
  const given: WebhookHeaders[] = [
    new Headers(headers() as Record<string, string>),
    { 'Webhook-Id': 'evt_1', 'WEBHOOK-TIMESTAMP': String(seconds), 'Webhook-Signature': signature },
    { 'webhook-id': ['evt_1'], 'webhook-timestamp': [String(seconds)], 'webhook-signature': [signature] },
  ];
  for (const one of given) assert.deepEqual(verifyWebhook(body, one, secret, { now }), event);
});

test('webhooks#signature: one of several signatures is enough (rotation); other versions are passed over', () => {
  const both = `v1a,AAAA ${sign(other)} v2,${sign().slice(3)} ${sign()}`;
  assert.deepEqual(verifyWebhook(body, headers({ 'webhook-signature': both }), secret, { now }), event);
  refused(headers({ 'webhook-signature': `v2,${sign().slice(3)} ${sign(other)}` }));
});

test('a wrong body, id, timestamp, secret or signature is refused', () => {
  refused(headers(), body.replace('evt_1', 'evt_2'));
  refused(headers(), `${body} `);
  refused(headers({ 'webhook-id': 'evt_2' }));
  refused(headers({ 'webhook-timestamp': String(seconds - 1) }));
  refused(headers(), body, other);
  for (const signature of ['v1,', 'v1', sign().slice(3), 'v1,AAAA', sign().slice(0, -6), ' ', 'v1,é']) {
    refused(headers({ 'webhook-signature': signature }));
  }
});

test('a missing header is refused', () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    refused(headers({ [name]: undefined }));
    refused(headers({ [name]: '' }));
  }
  refused({});
});

test('webhooks#signature: 300 s from now is accepted on both sides, 301 is not', () => {
  const at = (offset: number) =>
    headers({
      'webhook-timestamp': String(seconds + offset),
      'webhook-signature': sign(secret, seconds + offset),
    });
  for (const offset of [-300, 300]) assert.deepEqual(verifyWebhook(body, at(offset), secret, { now }), event);
  for (const offset of [-301, 301]) refused(at(offset));
  const strict = { now, toleranceSeconds: 10 };
  assert.throws(() => verifyWebhook(body, at(-11), secret, strict), WebhookVerificationError);
});

test('a timestamp that is not plain digits is refused', () => {
  for (const bad of [
    'NaN',
    'Infinity',
    `${seconds}.5`,
    `+${seconds}`,
    `0x${seconds.toString(16)}`,
    '1e9',
    '-1',
  ]) {
    const signature = createHmac('sha256', Buffer.alloc(32, 7))
      .update(`evt_1.${bad}.${body}`)
      .digest('base64');
    refused(headers({ 'webhook-timestamp': bad, 'webhook-signature': `v1,${signature}` }));
  }
});

test('a signed body that is not JSON is refused; an empty secret is the caller’s mistake', () => {
  refused(headers({ 'webhook-signature': sign(secret, seconds, 'no json') }), 'no json');
  for (const bad of ['', 'whsec_', 'whsec_!']) {
    assert.throws(() => verifyWebhook(body, headers(), bad, { now }), TypeError);
  }
});
