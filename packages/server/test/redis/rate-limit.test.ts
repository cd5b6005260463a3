import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import { redisRateLimiter } from '../../src/platform/rate-limit/redis.ts';
import { startRedis } from '../support/redis.ts';
import { limiterSuite } from './rate-limit-suite.ts';
import { patienceMs, useRedis } from './tools.ts';

const { redis, cluster, connect } = await useRedis();

limiterSuite('memory', {
  nodes: (count, time) =>
    new Array(count).fill(memoryRateLimiter(time)) as ReturnType<typeof memoryRateLimiter>[],
});
for (const [name, { url }] of [
  ['one Redis', redis],
  ['Redis Cluster', cluster],
] as const)
  limiterSuite(name, {
    nodes: async (count, time) =>
      Promise.all(
        Array.from({ length: count }, async () =>
          redisRateLimiter({ connection: await connect(url), clock: systemClock, time }),
        ),
      ),
  });

test("plans#rates: Redis counts by its own clock, whatever a node's says", async () => {
  const ahead = { now: () => systemClock.now() + 3_600_000 };
  const limiters = await Promise.all(
    [systemClock, ahead].map(async (clock) =>
      redisRateLimiter({ connection: await connect(redis.url), clock }),
    ),
  );
  const checks = [{ key: { what: 'm', of: 'clock' }, limit: { max: 10, windowMs: 900_000 } }];
  let allowed = 0;
  for (let i = 0; i < 20; i++) if ((await limiters[i % 2]!.take(checks))[0]!.allowed) allowed++;
  // The window may turn once in between; an hour of difference would allow twice as many.
  assert.ok(allowed >= 10 && allowed <= 11, `${allowed} allowed`);
});

test('plans#rates: counters in Redis end by themselves', async () => {
  const connection = await connect(redis.url);
  await redisRateLimiter({ connection, clock: systemClock }).take([
    { key: { what: 'u', of: 'ends' }, limit: { perSecond: 20, burst: 40 } },
    { key: { what: 'm', of: 'ends' }, limit: { perMinute: 300 } },
  ]);
  for (const key of ['rl:{ends}u', 'rl:{ends}m']) {
    const ttl = await connection.client.pttl(key);
    assert.ok(ttl > 0 && ttl <= 180_000, `${key}: ${ttl}`);
  }
});

test('plans#rates: without Redis a node limits by itself, and together again when it is back', async () => {
  const own = await startRedis();
  const connection = await connect(own.url);
  const limiter = redisRateLimiter({ connection, clock: { now: () => 0 }, time: { now: () => 0 } });
  const checks = [{ key: { what: 'u', of: '1' }, limit: { perSecond: 1, burst: 3 } }];
  const take = async (): Promise<boolean> => (await limiter.take(checks))[0]!.allowed;
  assert.equal(await take(), true);
  await own.kill();
  assert.deepEqual([await take(), await take(), await take(), await take()], [true, true, true, false]);
  await own.start();
  assert.ok(await connection.ready(patienceMs));
  assert.deepEqual([await take(), await take(), await take(), await take()], [true, true, true, false]);
  await connect.close(connection);
  await own.stop();
});

test('a clock of Redis that is set back or ahead refuses nobody for longer', async () => {
  const time = { at: 1_700_000_000_000, now: () => time.at };
  const limiter = redisRateLimiter({ connection: await connect(redis.url), clock: systemClock, time });
  const bucket = { key: { what: 'u', of: 'set' }, limit: { perSecond: 20, burst: 40 } };
  const checks = [bucket, { key: { what: 'f', of: 'set' }, limit: { perMinute: 30 } }];
  for (const step of [-30_000, -3_600_000, 90_000, -90_000]) {
    for (let i = 0; i < 60; i++) await limiter.take([bucket]);
    await limiter.owe(bucket.key, bucket.limit, 20);
    for (let i = 0; i < 40; i++) await limiter.take(checks);
    time.at += step;
    for (const verdict of await limiter.take(checks)) {
      assert.ok(verdict.retryAfterMs <= 60_000, `after ${step} ms: ${verdict.retryAfterMs} ms`);
      assert.ok(verdict.resetMs <= 60_000);
    }
    time.at += 3_100;
    assert.ok((await limiter.take([bucket]))[0]!.allowed, `three seconds after a step of ${step} ms`);
  }
});
