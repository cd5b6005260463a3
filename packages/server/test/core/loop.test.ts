import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createLoop } from '../../src/platform/jobs/loop.ts';
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
  const loop = createLoop(createLogger('silent'), 'a loop', 1_000, turn, { rests, timers: time.timers });
  loop.start();
  await time.pass(1_000);
  const counted = turns;
  const stopped = loop.stop();
  await time.pass(2_000);
  await stopped;
  return counted;
}

test('issue 10: a loop whose turns are slow rests for four times as long as they take, and no longer than 500 ms', async () => {
  assert.equal(await turnsInASecond(10, true), 101, 'a fast one goes on');
  assert.equal(await turnsInASecond(50, true), 5);
  assert.equal(await turnsInASecond(50, false), 21);
  assert.equal(await turnsInASecond(400, true), 2);
});
