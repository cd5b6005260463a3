import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rateLimits } from '@parley/protocol';
import fc from 'fast-check';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { isBucket } from '../../src/platform/rate-limit/port.ts';
import type { RateLimiter } from '../../src/platform/rate-limit/port.ts';
import { seed } from '../../../../scripts/seed.ts';

export interface LimiterSubject {
  /** Several nodes that count together, at a time that the suite sets. */
  nodes(count: number, time: { now(): number }): RateLimiter[] | Promise<RateLimiter[]>;
}

const user = { perSecond: 20, burst: 40 };

/** plans#rates: rate limits. Keys are made anew for each test. */
export function limiterSuite(name: string, subject: LimiterSubject): void {
  let keys = 0;
  const about = (): string => `${name.length}:${++keys}`;

  test(`plans#rates: ${name}: a bucket lets its burst through, then its rate`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter] = await subject.nodes(1, time);
    const key = { what: 'u', of: about() };
    for (let i = 0; i < 40; i++) {
      const [verdict] = await limiter!.take([{ key, limit: user }]);
      assert.equal(verdict!.allowed, true);
      assert.equal(verdict!.remaining, 39 - i);
    }
    const [refused] = await limiter!.take([{ key, limit: user }]);
    assert.equal(refused!.allowed, false);
    assert.equal(refused!.remaining, 0);
    assert.equal(refused!.retryAfterMs, 50);
    time.at += refused!.retryAfterMs - 1;
    assert.equal((await limiter!.take([{ key, limit: user }]))[0]!.allowed, false);
    time.at += 1;
    assert.equal((await limiter!.take([{ key, limit: user }]))[0]!.allowed, true);
    assert.equal((await limiter!.take([{ key, limit: user }]))[0]!.allowed, false);
  });

  test(`plans#rates: ${name}: a window slides, and retryAfterMs is when one more is allowed`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter] = await subject.nodes(1, time);
    const checks = [{ key: { what: 'f', of: about() }, limit: rateLimits.upload }];
    for (let i = 0; i < rateLimits.upload.perMinute; i++)
      assert.equal((await limiter!.take(checks))[0]!.allowed, true);
    const [refused] = await limiter!.take(checks);
    assert.equal(refused!.allowed, false);
    time.at += refused!.retryAfterMs - 2;
    assert.equal((await limiter!.take(checks))[0]!.allowed, false);
    time.at += 2;
    assert.equal((await limiter!.take(checks))[0]!.allowed, true);
  });

  test(`plans#rates: ${name}: one limit that refuses leaves the others whole`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter] = await subject.nodes(1, time);
    const who = about();
    const small = { key: { what: 'm', of: who }, limit: { perMinute: 1 } };
    const large = { key: { what: 's', of: who }, limit: user };
    assert.deepEqual(
      (await limiter!.take([large, small])).map((v) => v.allowed),
      [true, true],
    );
    for (let i = 0; i < 5; i++)
      assert.deepEqual(
        (await limiter!.take([large, small])).map((v) => v.allowed),
        [true, false],
      );
    assert.equal((await limiter!.take([large]))[0]!.remaining, 38);
  });

  test(`${name}: what is given back can be taken again, once`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter, other] = await subject.nodes(2, time);
    const checks = [{ key: { what: 'x', of: about() }, limit: { max: 2, windowMs: 900_000 } }];
    const take = async () => (await limiter!.take(checks))[0]!.allowed;
    assert.deepEqual([await take(), await take(), await take()], [true, true, false]);
    await other!.giveBack(checks);
    assert.deepEqual([await take(), await take()], [true, false]);
    time.at += 1_799_999;
    assert.deepEqual([await take(), await take()], [true, true]);
    time.at += 900_000;
    for (let i = 0; i < 5; i++) await limiter!.giveBack(checks);
    assert.deepEqual([await take(), await take()], [true, false], 'the window before stays as it was');
  });

  test(`plans#rates: ${name}: nodes count together`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const nodes = await subject.nodes(3, time);
    const key = { what: 's', of: about() };
    const verdicts = await Promise.all(
      Array.from(
        { length: 90 },
        async (_, i) => (await nodes[i % 3]!.take([{ key, limit: user }]))[0]!.allowed,
      ),
    );
    assert.equal(verdicts.filter(Boolean).length, 40);
  });

  test(`${name}: what is owed is made up before the bucket allows one more`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter, other] = await subject.nodes(2, time);
    const key = { what: 'i', of: about() };
    const one = async () => (await other!.take([{ key, limit: user }]))[0]!;
    await limiter!.owe(key, user, 38.5);
    assert.equal((await one()).remaining, 0);
    await limiter!.owe(key, user, 99.5);
    const refused = await one();
    assert.deepEqual([refused.allowed, refused.remaining, refused.retryAfterMs], [false, 0, 5_000]);
    time.at += 4_999;
    assert.equal((await one()).allowed, false);
    time.at += 1;
    assert.equal((await one()).allowed, true);
  });

  test(`plans#rates: ${name}: every verdict is that of the rules, at any pace`, async () => {
    const time = { at: 1_700_000_000_000, now: () => time.at };
    const [limiter] = await subject.nodes(1, time);
    const model = memoryRateLimiter(time);
    const limits = [user, { perSecond: 7, burst: 3 }, { perMinute: 4 }, { max: 10, windowMs: 900_000 }];
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.tuple(
            fc.constantFrom(0, 1, 7, 143, 5_000, 61_000, 800_000),
            fc.subarray([0, 1, 2, 3], { minLength: 1 }),
          ),
          {
            maxLength: 30,
          },
        ),
        async (steps) => {
          const who = about();
          for (const [wait, which] of steps) {
            time.at += wait;
            const checks = which.map((i) => ({ key: { what: 'abcd'[i]!, of: who }, limit: limits[i]! }));
            assert.deepEqual(await limiter!.take(checks), model.take(checks));
            if (wait !== 7) continue;
            const windows = checks.filter(({ limit }) => !isBucket(limit)) as Parameters<
              RateLimiter['giveBack']
            >[0];
            await limiter!.giveBack(windows);
            void model.giveBack(windows);
          }
        },
      ),
      { seed: seed(`limits, ${name}`), numRuns: 40 },
    );
  });
}
