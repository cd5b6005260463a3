import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatcher } from '../../src/platform/batch.ts';
import { Pace } from '../../src/platform/pace.ts';
import { StandingTime } from '../support/time.ts';

function paced(msPerRate = 5, maxMs = 25) {
  let now = 1_000;
  const pace = new Pace(msPerRate, maxMs, () => now);
  return {
    pace,
    /** Goes with so many items, so many milliseconds apart. */
    go: (count: number, everyMs: number, items: number) => {
      for (let i = 0; i < count; i++) {
        now += everyMs;
        pace.begin(items);
      }
    },
    pass: (ms: number) => (now += ms),
  };
}

test('ARCHITECTURE: when little happens nothing waits', () => {
  const { pace, go } = paced();
  assert.equal(pace.wait(), 0, 'the first go');
  go(50, 5, 1);
  assert.equal(pace.wait(), 0, '0.2 per millisecond');
});

test('the more there is, the longer is the time between two goes, up to the limit', () => {
  for (const [items, expected] of [
    [10, 5],
    [30, 15],
    [1_000, 25],
  ] as const) {
    const { pace, go, pass } = paced();
    go(100, 10, items);
    assert.ok(Math.abs(pace.wait() - expected) < 0.01, `${items} in 10 ms: ${pace.wait()}`);
    pass(expected);
    assert.equal(pace.wait(), 0, 'it has passed');
  }
});

test('after a quiet time the next goes at once, and so does the one after it', () => {
  const { pace, go, pass } = paced();
  go(100, 10, 1_000);
  pass(10_000);
  assert.equal(pace.wait(), 0);
  pace.begin(1);
  assert.equal(pace.wait(), 0);
});

test('a batcher with a pace gathers until the next batch may begin', async () => {
  const sizes: number[] = [];
  const time = new StandingTime();
  const add = createBatcher<number, number>({
    maxBatch: 100,
    maxWaiting: 100,
    timers: time.timers,
    pace: new Pace(1_000_000, 30, time.monotonic),
    run: (items) => {
      sizes.push(items.length);
      return Promise.resolve(items);
    },
  });
  await add(0);
  await add(0);
  const all = [];
  for (let i = 0; i < 5; i++) {
    all.push(add(i));
    await time.pass(5);
  }
  assert.deepEqual(sizes, [1, 1]);
  assert.deepEqual(time.waiting, [5]);
  await time.pass(5);
  assert.deepEqual(sizes, [1, 1, 5]);
  await Promise.all(all);
});
