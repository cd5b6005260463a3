import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { plans, rateLimits } from '@parley/protocol';
import { assertError, createApi, serverApi } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { bucketVerdict, windowVerdict } from '../../src/platform/rate-limit/rules.ts';
import type { WindowState } from '../../src/platform/rate-limit/rules.ts';
import { useStandingHere } from '../gateway/here.ts';
import { createScene } from '../support/scene.ts';
import { lazy } from '../support/use.ts';

const { here, time } = useStandingHere();
const scene = lazy(() => createScene(here.url, 'dev', time.now));

/** Calls until one is refused: exactly the burst passes, and one more after each `1/perSecond`. */
async function assertLimited(
  call: () => Promise<Answer>,
  limit: { perSecond: number; burst: number },
  used = 0,
): Promise<void> {
  const answers = await Promise.all(Array.from({ length: limit.burst - used + 10 }, call));
  const refusals = answers.filter((a) => a.status === 429);
  assert.equal(refusals.length, 10);
  for (const refused of refusals) {
    const error = assertError(refused, 429, 'rate_limited');
    assert.equal(refused.body.error.type, 'rate_limited');
    assert.equal(refused.headers.get('ratelimit-limit'), String(limit.burst));
    assert.equal(refused.headers.get('ratelimit-remaining'), '0');
    assert.equal(error.retryAfterMs, 1_000 / limit.perSecond);
    assert.equal(refused.headers.get('retry-after'), '1');
  }
  time.advance(1_000 / limit.perSecond - 1);
  assert.equal((await call()).status, 429);
  time.advance(1);
  assert.ok((await call()).status < 300);
  assert.equal((await call()).status, 429);
}

describe('plans#rates: rate limits over REST', () => {
  it('the secret key on the free plan: 100/s, burst 200, per environment', async () => {
    const server = serverApi(here.url, 'prod');
    const first = await server('GET', '/v1/users');
    assert.deepEqual(
      ['limit', 'remaining', 'reset'].map((name) => first.headers.get(`ratelimit-${name}`)),
      ['200', '199', '1'],
    );
    await assertLimited(() => server('GET', '/v1/users?limit=1'), plans.free.secretKey, 1);
    assert.equal((await serverApi(here.url)('GET', '/v1/users?limit=1')).status, 200, 'others go on');
  });

  it('a user token: 20/s, burst 40, per user; the same id elsewhere is another user', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    await assertLimited(() => a.api('GET', '/v1/conversations'), rateLimits.user);
    assert.equal((await b.api('GET', '/v1/conversations')).status, 200);
    assert.equal((await scene.server('GET', `/v1/users/${a.id}`)).status, 200);
  });

  it('message sends: 10/s, burst 20, per user; a server’s sends on its behalf count against the key only', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const path = `/v1/conversations/${id}/messages`;
    for (let i = 0; i < 30; i++)
      assert.equal((await scene.server('POST', path, { text: 'x', senderId: a.id })).status, 201);
    await assertLimited(() => a.api('POST', path, { text: 'x', clientMsgId: randomUUID() }), rateLimits.send);
  });

  it('after Retry-After it goes on, and a 429 was not stored under its Idempotency-Key', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const send = (headers: Record<string, string>) =>
      a.api('POST', `/v1/conversations/${id}/messages`, { text: 'x', clientMsgId: 'once' }, headers);
    for (let i = 0; i < rateLimits.send.burst; i++)
      assert.equal((await send({ 'idempotency-key': randomUUID() })).status, 201);
    const headers = { 'idempotency-key': randomUUID() };
    const { retryAfterMs } = assertError(await send(headers), 429, 'rate_limited');
    time.advance(retryAfterMs!);
    const next = await send(headers);
    assert.deepEqual([next.status, next.headers.get('idempotent-replayed')], [201, null]);
  });

  it('wrong credentials are counted by address and refused past 100/s, burst 200', async () => {
    const nobody = createApi(here.url, 'nonsense');
    const answers = await Promise.all(Array.from({ length: 250 }, () => nobody('GET', '/v1/users')));
    assert.equal(answers.filter((a) => a.status === 401).length, 200);
    assert.equal(answers.filter((a) => a.status === 429).length, 50);
    assert.equal((await fetch(`${here.url}/healthz`)).status, 200, 'health is never refused');
    assert.equal((await scene.server('GET', '/v1/users?limit=1')).status, 200, 'good credentials go on');
  });
});

describe('plans#rates: the arithmetic, with a clock that stands still', () => {
  const key = plans.free.secretKey;

  it('a bucket gives its whole burst at once, then one every 1/rate', () => {
    let fullAt = 0;
    for (let i = 1; i <= 200; i++) {
      const verdict = bucketVerdict(fullAt, key, 1_000);
      assert.deepEqual([verdict.allowed, verdict.remaining], [true, 200 - i]);
      fullAt = verdict.fullAt;
    }
    const refused = bucketVerdict(fullAt, key, 1_000);
    assert.deepEqual(
      [refused.allowed, refused.remaining, refused.retryAfterMs, refused.resetMs, refused.fullAt],
      [false, 0, 10, 2_000, fullAt],
    );
    assert.equal(bucketVerdict(fullAt, key, 1_009).allowed, false);
    assert.equal(bucketVerdict(fullAt, key, 1_010).allowed, true);
    assert.equal(bucketVerdict(fullAt, key, 1_510).remaining, 50);
    assert.equal(bucketVerdict(fullAt, key, 90_000).remaining, 199);
  });

  it('10/s with burst 20 allows 20 and then 10 in every second', () => {
    let [fullAt, passed] = [0, 0];
    for (let now = 0; now < 5_000; now += 1) {
      const verdict = bucketVerdict(fullAt, rateLimits.send, now);
      fullAt = verdict.fullAt;
      if (verdict.allowed) passed += 1;
    }
    assert.equal(passed, 20 + 49);
  });

  const limit = rateLimits.sendMinute;
  const minute = 60_000;
  const fill = (count: number, now: number, state?: WindowState): WindowState => {
    for (let i = 0; i < count; i++) {
      const verdict = windowVerdict(state, limit, now);
      assert.equal(verdict.allowed, true);
      state = verdict.state;
    }
    return state!;
  };

  it('300 a minute: the 301st is refused until the minute has slid on', () => {
    const state = fill(300, 10 * minute);
    const refused = windowVerdict(state, limit, 10 * minute);
    assert.deepEqual([refused.allowed, refused.remaining, refused.state], [false, 0, state]);
    assert.equal(windowVerdict(state, limit, 11 * minute - 1).allowed, false);
    const at = 10 * minute + refused.retryAfterMs;
    assert.equal(windowVerdict(state, limit, at).allowed, true);
    assert.equal(windowVerdict(state, limit, at - 1).allowed, false);
    assert.equal(windowVerdict(state, limit, 13 * minute).remaining, 299);
  });

  it('what was sent in the minute before counts for its share', () => {
    const state = fill(200, 5 * minute);
    const half = fill(200, 6.5 * minute, state);
    assert.equal(windowVerdict(half, limit, 6.5 * minute).allowed, false);
  });

  it('retryAfterMs is the first moment at which one more is allowed, to the millisecond', () => {
    for (const [before, now, elapsed] of [
      [300, 0, 0],
      [300, 150, 30_000],
      [100, 300, 59_999],
      [120, 250, 12_345],
      [0, 300, 1],
    ] as const) {
      const state = { index: 7, count: now, before };
      const at = 7 * minute + elapsed;
      const refused = windowVerdict(state, limit, at);
      if (refused.allowed) continue;
      assert.equal(windowVerdict(state, limit, at + refused.retryAfterMs).allowed, true, `${before} ${now}`);
      assert.equal(
        windowVerdict(state, limit, at + refused.retryAfterMs - 2).allowed,
        false,
        `${before} ${now}`,
      );
    }
  });

  it('takes one from every limit or from none', async () => {
    let now = 0;
    const limiter = memoryRateLimiter({ now: () => now });
    const small = { key: { what: 'small', of: 'x' }, limit: { perSecond: 1, burst: 1 } };
    const large = { key: { what: 'large', of: 'x' }, limit: { perSecond: 1, burst: 5 } };
    const allowed = async (...checks: Parameters<typeof limiter.take>[0][number][]) =>
      (await limiter.take(checks)).map((v) => v.allowed);
    assert.deepEqual(await allowed(large, small), [true, true]);
    assert.deepEqual(await allowed(large, small), [true, false]);
    assert.equal((await limiter.take([large]))[0]!.remaining, 3, 'the refused call took nothing');
    now = 1_000;
    assert.deepEqual(await allowed(small), [true]);
  });

  it('plans#table: the plans', () => {
    const rows = Object.values(plans).map((p) => [
      p.name,
      p.mauLimit,
      p.connectionLimit,
      p.secretKey.perSecond,
      p.secretKey.burst,
      p.callParticipants,
    ]);
    assert.deepEqual(rows, [
      ['free', 1_000, 1_000, 100, 200, 4],
      ['starter', 10_000, 5_000, 200, 400, 8],
      ['growth', 100_000, 20_000, 500, 1_000, 16],
      ['scale', 1_000_000, 100_000, 1_000, 2_000, 32],
      ['enterprise', null, null, 5_000, 10_000, 50],
    ]);
  });
});
