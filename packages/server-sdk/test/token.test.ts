import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { Parley, signToken } from '../src/index.ts';
import { secretKey } from './support.ts';

const decode = (part: string | undefined): unknown =>
  JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
const now = () => Date.parse('2026-01-15T09:30:00.900Z');

test('identity#user-token: HS256, kid, sub, iat, exp, keyed with the whole secret key string', () => {
  const token = signToken({ secretKey, userId: 'alice', expiresIn: 60, now });
  const [header, claims, signature, ...rest] = token.split('.');
  assert.deepEqual(rest, []);
  assert.deepEqual(decode(header), { alg: 'HS256', typ: 'JWT', kid: 'k'.repeat(16) });
  const iat = Date.parse('2026-01-15T09:30:00Z') / 1000;
  assert.deepEqual(decode(claims), { sub: 'alice', iat, exp: iat + 60 });
  const key = Buffer.from(secretKey, 'utf8');
  assert.equal(signature, createHmac('sha256', key).update(`${header}.${claims}`).digest('base64url'));
});

test('parley.signToken uses its own key and clock; a day unless told', () => {
  const parley = new Parley({ secretKey, url: 'http://127.0.0.1:9', now });
  assert.equal(
    parley.signToken({ userId: 'alice' }),
    signToken({ secretKey, userId: 'alice', expiresIn: 86_400, now }),
  );
});

test('what the service would refuse is refused here', () => {
  for (const expiresIn of [0, -1, 1.5, 2_592_001, NaN]) {
    assert.throws(() => signToken({ secretKey, userId: 'alice', expiresIn, now }), RangeError);
  }
  const wrong: unknown[] = [
    '',
    'a b',
    'x'.repeat(129),
    undefined,
    null,
    7,
    ['alice'],
    { toString: () => 'alice' },
  ];
  for (const userId of wrong) {
    assert.throws(() => signToken({ secretKey, userId: userId as string, now }), TypeError);
  }
  assert.throws(() => signToken({ secretKey: 'sk_live_x', userId: 'alice', now }), TypeError);
  signToken({ secretKey, userId: 'alice', expiresIn: 2_592_000, now });
});
