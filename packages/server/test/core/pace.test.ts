import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatcher } from '../../src/platform/flow/batcher.ts';
import { Pace } from '../../src/platform/pace.ts';
import { createPressure } from '../../src/platform/pressure.ts';
import { StandingTime } from '../support/time.ts';

function paced(msPerRate = 5, maxMs = 25, pressure = 1) {
  let now = 1_000;
  const pace = new Pace({ msPerRate, mostMs: maxMs, now: () => now, pressure: () => pressure });
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

test('whatever arrives, nothing waits as long as nothing presses, and half as long at half the pressure', () => {
  for (const [pressure, expected] of [
    [0, 0],
    [0.05, 0],
    [0.5, 12.5],
    [1, 25],
  ] as const) {
    const { pace, go } = paced(5, 25, pressure);
    go(100, 10, 1_000);
    assert.equal(pace.spacing, expected);
    assert.equal(pace.wait(), expected);
  }
});

test('the pressure is that of an event loop that has no time left, and goes when it has', () => {
  const loop = { idle: 0, active: 0 };
  const pressure = createPressure(() => ({ ...loop }));
  /** A second in which the loop is busy for this share of every turn. */
  const second = (busy: number): number => {
    for (let i = 0; i < 200; i++) {
      loop.active += 5 * busy;
      loop.idle += 5 * (1 - busy);
      pressure();
    }
    return pressure();
  };
  assert.equal(second(0), 0);
  assert.equal(second(0.5), 0);
  const [some, more, all] = [second(0.85), second(0.92), second(1)];
  assert.ok(some > 0 && some < more && more < all, `${some} ${more} ${all}`);
  assert.equal(all, 1);
  loop.active += 20;
  assert.equal(pressure(), 1, 'a turn is too short to tell');
  assert.equal(second(0.3), 0);
});

test('one long turn of the event loop is no pressure yet', () => {
  const loop = { idle: 0, active: 0 };
  const pressure = createPressure(() => ({ ...loop }));
  loop.active += 30;
  assert.equal(pressure(), 0);
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
  const batcher = createBatcher<number, number>({
    maxBatch: 100,
    maxWaiting: 100,
    timers: time.timers,
    pace: new Pace({ msPerRate: 1_000_000, mostMs: 30, now: time.monotonic, pressure: () => 1 }),
    run: (items) => {
      sizes.push(items.length);
      return Promise.resolve(items);
    },
  });
  await batcher.add(0);
  await batcher.add(0);
  const all = [];
  for (let i = 0; i < 5; i++) {
    all.push(batcher.add(i));
    await time.pass(5);
  }
  assert.deepEqual(sizes, [1, 1]);
  assert.deepEqual(time.waiting, [5]);
  await time.pass(5);
  assert.deepEqual(sizes, [1, 1, 5]);
  await Promise.all(all);
});

test('what arrives in one turn of the event loop goes together, though nothing waits', async () => {
  const sizes: number[] = [];
  const batcher = createBatcher<number, number>({
    maxBatch: 100,
    maxWaiting: 100,
    wholeTurns: true,
    run: (items) => {
      sizes.push(items.length);
      return Promise.resolve(items);
    },
  });
  const first = batcher.add(1);
  await Promise.resolve();
  await Promise.all([first, batcher.add(2), Promise.resolve().then(() => batcher.add(3))]);
  assert.deepEqual(sizes, [3]);
});
