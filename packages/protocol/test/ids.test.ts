import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  environmentIdPattern,
  idPrefixes,
  idTime,
  secretKeyPattern,
  ulid,
  userIdPattern,
} from '../src/index.ts';
import { seed } from '../../../scripts/seed.ts';

const bytes = fc.uint8Array({ minLength: 10, maxLength: 10 });
const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });

test('api#ids: identifier prefixes', () => {
  const expected = {
    environment: 'env_',
    conversation: 'conv_',
    directConversation: 'conv_dm_',
    message: 'msg_',
    attachment: 'att_',
    webhook: 'wh_',
    delivery: 'whd_',
    event: 'evt_',
    request: 'req_',
    call: 'call_',
    session: 'ses_',
  };
  assert.deepEqual({ ...idPrefixes, ...expected }, idPrefixes);
});

test('api#ids: an id is 26 characters of ULID in lower case', () => {
  fc.assert(
    fc.property(time, bytes, (ms, random) => /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(ulid(ms, random))),
    { seed: seed('form of ids') },
  );
  assert.equal(ulid(1469918176385, new Uint8Array(10)), '01aryz6s410000000000000000', 'the ULID example');
  assert.equal(ulid(2 ** 48 - 1, new Uint8Array(10).fill(255)), '7zzzzzzzzzzzzzzzzzzzzzzzzz');
});

test('an id tells when it was made; what holds no ULID tells nothing', () => {
  fc.assert(
    fc.property(time, bytes, (ms, random) => idTime(`req_${ulid(ms, random)}`) === ms),
    { seed: seed('times of ids') },
  );
  for (const id of ['req_x', 'conv_dm_abc', `req_${'u'.repeat(26)}`, ulid(1, new Uint8Array(10))])
    assert.equal(idTime(id), null);
});

test('ulid: order of ids is order of (time, random bytes), so no two inputs share an id', () => {
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0);
  fc.assert(
    fc.property(time, time, bytes, bytes, (t1, t2, r1, r2) => {
      const expected = compare(t1, t2) || Buffer.compare(r1, r2);
      assert.equal(compare(ulid(t1, r1), ulid(t2, r2)), expected);
      assert.equal(compare(ulid(t1, r1), ulid(t1, r2)), Buffer.compare(r1, r2));
    }),
    { seed: seed('order of ids') },
  );
});

test('users#id, identity#environments and identity#secret-key: patterns of user ids, environment ids and secret keys', () => {
  const user = new RegExp(userIdPattern);
  for (const good of ['a', 'A-Z_9@x.y:z', 'x'.repeat(128)]) assert.match(good, user);
  for (const bad of ['', 'x'.repeat(129), 'a b', 'é', 'a/b', 'a\n', 'a%']) assert.doesNotMatch(bad, user);
  const env = new RegExp(environmentIdPattern);
  for (const good of ['env_1', `env_${'a'.repeat(40)}`]) assert.match(good, env);
  for (const bad of ['env_', 'env_A', `env_${'a'.repeat(41)}`, 'x_env_a']) assert.doesNotMatch(bad, env);
  const key = new RegExp(secretKeyPattern);
  assert.match(`sk_live_${'k'.repeat(16)}_${'S'.repeat(32)}`, key);
  assert.doesNotMatch(`sk_live_${'k'.repeat(15)}_${'S'.repeat(32)}`, key);
  assert.doesNotMatch(`sk_test_${'k'.repeat(16)}_${'S'.repeat(32)}`, key);
});
