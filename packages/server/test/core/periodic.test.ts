import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createPeriodic } from '../../src/platform/flow/periodic.ts';
import { StandingTime } from '../support/time.ts';

/** How many turns a loop that always has work takes in a second, if each takes so many milliseconds. */
async function turnsInASecond(ms: number, rests: boolean): Promise<number> {
  const time = new StandingTime();
  let turns = 0;
  const turn = async (): Promise<number> => {
    turns++;
    await sleep(time.timers, ms);
    return 0;
  };
  const loop = createPeriodic(1_000, createLogger('silent'), 'a loop', turn, { rests, timers: time.timers });
  loop.start();
  await time.pass(1_000);
  const counted = turns;
  const stopped = loop.stop();
  await time.pass(2_000);
  await stopped;
  return counted;
}

test('a loop whose turns are slow rests for four times as long as they take, and no longer than 500 ms', async () => {
  assert.equal(await turnsInASecond(10, true), 101, 'a fast one goes on');
  assert.equal(await turnsInASecond(50, true), 5);
  assert.equal(await turnsInASecond(50, false), 21);
  assert.equal(await turnsInASecond(400, true), 2);
});

test('it runs again when it is woken during a run, and never twice at once', async () => {
  let looks = 0;
  let inside = 0;
  let release!: () => void;
  const gate = () => new Promise<void>((resolve) => (release = resolve));
  let entered!: () => void;
  let entry = new Promise<void>((resolve) => (entered = resolve));
  const periodic = createPeriodic(1_000_000, createLogger('silent'), 'test', async () => {
    looks++;
    assert.equal(++inside, 1);
    const open = gate();
    entered();
    await open;
    inside--;
    return null;
  });
  periodic.start();
  await entry;
  entry = new Promise((resolve) => (entered = resolve));
  periodic.wake();
  periodic.wake();
  release();
  await entry;
  assert.equal(looks, 2);
  release();
  await periodic.stop();
  assert.equal(looks, 2);
});

test('it runs at once and then every so often, however long a run takes, and goes on after a failure', async () => {
  const time = new StandingTime();
  const began: number[] = [];
  const start = time.timers.monotonic();
  const took = [30, 0, 250, 10, 0];
  const job = async (): Promise<void> => {
    began.push(time.timers.monotonic() - start);
    await sleep(time.timers, took[began.length - 1] ?? 0);
    if (began.length === 2) throw new Error('once');
  };
  const periodic = createPeriodic(100, createLogger('silent'), 'test', job, { timers: time.timers });
  periodic.wake();
  await time.pass(100);
  assert.deepEqual(began, [], 'not before the start');
  periodic.start();
  await time.pass(650);
  assert.deepEqual(
    began.map((at) => at - 100),
    [0, 100, 200, 500, 600],
  );
  await periodic.stop();
  await time.pass(500);
  assert.equal(began.length, 5);
});
