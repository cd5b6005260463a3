import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Parley, ParleyError } from '../src/index.ts';
import { failure, secretKey, setUp } from './support.ts';

const user = { id: 'alice', name: 'Alice' };
const ok = { status: 200, body: user };

test('a call is the route of the table: ids in the path, other fields in query or body', async (t) => {
  const { parley, seen } = await setUp(t, () => ok);
  await parley.users.upsert('a:b@c', { name: 'Alice', metadata: { a: 1 } });
  await parley.users.erase('alice', { messages: 'delete' });
  await parley.messages.send('conv_1', { text: 'hi', senderId: 'alice' });
  await parley.users.get('alice');
  await parley.users.deactivate('alice');
  assert.deepEqual(
    seen.map((one) => [one.method, one.url, one.body]),
    [
      ['PUT', '/v1/users/a%3Ab%40c', '{"name":"Alice","metadata":{"a":1}}'],
      ['DELETE', '/v1/users/alice?messages=delete', ''],
      ['POST', '/v1/conversations/conv_1/messages', '{"text":"hi","senderId":"alice"}'],
      ['GET', '/v1/users/alice', ''],
      ['POST', '/v1/users/alice/deactivate', '{}'],
    ],
  );
  for (const one of seen) assert.equal(one.headers.authorization, `Bearer ${secretKey}`);
  assert.equal(seen[0]?.headers['content-type'], 'application/json');
  assert.equal(seen[3]?.headers['content-type'], undefined);
});

test('answers: JSON is returned, 204 is undefined', async (t) => {
  const { parley } = await setUp(t, [ok, { status: 204 }]);
  assert.deepEqual(await parley.users.get('alice'), user);
  assert.equal(await parley.conversations.delete('conv_1'), undefined);
});

test('an id that would change the path is refused before any request', async (t) => {
  const { parley, seen } = await setUp(t, () => ok);
  for (const bad of ['', '.', '..', undefined as unknown as string]) {
    assert.throws(() => parley.users.get(bad), TypeError);
  }
  await parley.users.get('../x');
  assert.deepEqual(
    seen.map((one) => one.url),
    ['/v1/users/..%2Fx'],
  );
});

test('errors#body: an error answer becomes a ParleyError with all its fields, and 4xx is not tried again', async (t) => {
  const { parley, seen } = await setUp(t, [
    { status: 400, body: failure('invalid_request', 'invalid_request', { param: 'name' }) },
  ]);
  await assert.rejects(parley.users.upsert('alice', {}), (error) => {
    assert.ok(error instanceof ParleyError);
    const { type, code, param, requestId, retryAfterMs, status, message } = error;
    assert.deepEqual(
      { type, code, param, requestId, retryAfterMs, status, message },
      {
        type: 'invalid_request',
        code: 'invalid_request',
        param: 'name',
        requestId: 'req_9',
        retryAfterMs: undefined,
        status: 400,
        message: 'It is invalid_request.',
      },
    );
    return true;
  });
  assert.equal(seen.length, 1);
});

test('sdk#server-retries: POST, PATCH and DELETE carry one key over all tries; GET and PUT none', async (t) => {
  const down = { status: 503, body: failure('service_unavailable', 'unavailable', { retryAfterMs: 0 }) };
  let last = '';
  const { parley, seen } = await setUp(t, (one) => {
    const again = one.method + one.url === last;
    last = one.method + one.url;
    return again ? ok : down;
  });
  await parley.messages.send('conv_1', { text: 'hi' });
  await parley.messages.update('msg_1', { text: 'ho', expectedVersion: 1 });
  await parley.messages.delete('msg_1');
  await parley.users.get('alice');
  await parley.users.upsert('alice', {});
  assert.equal(seen.length, 10);
  const keys = seen.map((one) => one.headers['idempotency-key']);
  const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
  for (const index of [0, 2, 4]) {
    assert.match(String(keys[index]), uuid);
    assert.equal(keys[index + 1], keys[index]);
    assert.equal(seen[index + 1]?.body, seen[index]?.body);
  }
  assert.equal(new Set(keys.slice(0, 6)).size, 3, 'each call has its own');
  assert.deepEqual(keys.slice(6), [undefined, undefined, undefined, undefined]);
});

test('a key given by the caller is used as it is', async (t) => {
  const { parley, seen } = await setUp(t, () => ok);
  await parley.users.reactivate('alice', { idempotencyKey: 'mine' });
  await parley.messages.send('conv_1', { text: 'hi' }, { idempotencyKey: 'mine too' });
  assert.deepEqual(
    seen.map((one) => one.headers['idempotency-key']),
    ['mine', 'mine too'],
  );
});

test('429: waits what the body asks for, plus jitter, then succeeds', async (t) => {
  const limited = { status: 429, body: failure('rate_limited', 'rate_limited', { retryAfterMs: 1500 }) };
  const { parley, seen, waits } = await setUp(t, [limited, limited, ok]);
  assert.deepEqual(await parley.users.get('alice'), user);
  assert.equal(seen.length, 3);
  assert.deepEqual(waits, [1500 + 250, 1500 + 500], 'half of 500 and of 1000');
});

test('Retry-After is honoured where the body says nothing: seconds and dates', async (t) => {
  const now = Date.parse('2026-01-15T09:30:00Z');
  const { parley, waits } = await setUp(
    t,
    [
      { status: 503, text: '<html>', headers: { 'retry-after': '2' } },
      { status: 503, text: '<html>', headers: { 'retry-after': 'Thu, 15 Jan 2026 09:30:03 GMT' } },
      ok,
    ],
    { random: () => 0, now: () => now },
  );
  await parley.users.get('alice');
  assert.deepEqual(waits, [2000, 3000]);
});

test('a wait longer than 30 s is the caller’s decision', async (t) => {
  const { parley, seen, waits } = await setUp(t, [
    { status: 429, body: failure('plan_limit_reached', 'rate_limited', { retryAfterMs: 60_000 }) },
  ]);
  await assert.rejects(parley.users.get('alice'), { code: 'plan_limit_reached', retryAfterMs: 60_000 });
  assert.equal(seen.length, 1);
  assert.deepEqual(waits, []);
});

test('tries are bounded, and the last error is the one thrown', async (t) => {
  const { parley, seen, waits } = await setUp(t, () => ({
    status: 500,
    body: failure('internal', 'internal'),
  }));
  await assert.rejects(parley.users.get('alice'), { code: 'internal', status: 500 });
  assert.equal(seen.length, 3);
  assert.equal(waits.length, 2);
  const patient = await setUp(t, () => ({ status: 502, text: 'bad gateway' }), { tries: 5 });
  await assert.rejects(patient.parley.users.get('alice'), { code: 'unexpected_response', status: 502 });
  assert.equal(patient.seen.length, 5);
});

test('a connection cut before or in the middle of the answer is tried again', async (t) => {
  const { parley, seen } = await setUp(t, ['cut', 'half', ok]);
  assert.deepEqual(await parley.users.deactivate('alice'), user);
  assert.equal(seen.length, 3);
});

test('an unreachable service is a ParleyError with status 0 and the cause', async (t) => {
  const { parley } = await setUp(t, () => 'cut', { tries: 1 });
  await assert.rejects(parley.users.get('alice'), (error) => {
    assert.ok(error instanceof ParleyError && error.cause instanceof Error);
    assert.deepEqual([error.code, error.status], ['network_error', 0]);
    return true;
  });
});

test('a service that never answers is given up after timeoutMs', async (t) => {
  let attempts = 0;
  const { parley } = await setUp(t, () => 'silence', {
    tries: 2,
    timeoutMs: 50,
    fetch: (input, init) => {
      attempts += 1;
      return fetch(input, init);
    },
  });
  await assert.rejects(parley.users.get('alice'), { code: 'network_error', message: /in time/ });
  assert.equal(attempts, 2);
});

test('the caller’s signal ends a call and its waiting, with its own reason', async (t) => {
  const controller = new AbortController();
  const reason = new Error('enough');
  const { parley, seen } = await setUp(t, () => ({ status: 500 }), {
    sleep: (_ms, signal) => {
      controller.abort(reason);
      assert.equal(signal, controller.signal);
      return Promise.resolve();
    },
  });
  await assert.rejects(parley.users.get('alice', { signal: controller.signal }), reason);
  assert.equal(seen.length, 1);
});

test('a redirect is not followed: the key goes to one address only', async (t) => {
  const elsewhere = await setUp(t, () => ok);
  const { parley } = await setUp(t, () => ({ status: 302, headers: { location: elsewhere.url } }));
  await assert.rejects(parley.users.get('alice'), { status: 302, code: 'unexpected_response' });
  assert.equal(elsewhere.seen.length, 0);
});

test('an answer that is not JSON is an error, not a value', async (t) => {
  const { parley } = await setUp(t, () => ({ status: 200, text: '<html>' }));
  await assert.rejects(parley.users.get('alice'), { code: 'unexpected_response', requestId: 'req_1' });
});

test('the constructor refuses bad settings, and nothing prints the key', async () => {
  const url = 'http://127.0.0.1:9';
  const bad = `${secretKey}x`;
  assert.throws(
    () => new Parley({ secretKey: bad, url }),
    (error) => error instanceof TypeError && !error.message.includes(bad),
  );
  assert.throws(() => new Parley({ secretKey, url: 'nowhere' }), TypeError);
  assert.throws(() => new Parley({ secretKey, url: 'ftp://x' }), TypeError);
  assert.throws(() => new Parley({ secretKey, url, tries: 0 }), RangeError);
  const parley = new Parley({ secretKey, url, tries: 1 });
  assert.ok(!inspect(parley, { depth: 9, showHidden: true }).includes(secretKey));
  assert.ok(!(JSON.stringify(parley) ?? '').includes(secretKey));
  const error = await parley.users.get('alice').catch((cause: unknown) => cause);
  assert.ok(error instanceof ParleyError && !inspect(error, { depth: 9 }).includes(secretKey));
});
