import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { payloadHours, retryDelay, retryDelays } from '../../src/features/webhooks/schedule.ts';

const hour = 3_600_000;

test('webhooks#schedule: immediately, then 10 s, 1 min, 10 min, 1 h, 3 h, 6 h, 12 h, 24 h, 24 h, then no more', () => {
  const expected = [10, 60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 86_400].map((s) => s * 1000);
  assert.deepEqual(retryDelays, expected);
  expected.forEach((delay, i) => assert.equal(retryDelay(i + 1, 0.5), delay));
  assert.equal(retryDelay(10, 0.5), null);
});

test('webhooks#schedule: each delay times a random factor in 0.8 to 1.2', () => {
  for (let attempt = 1; attempt <= 9; attempt++) {
    assert.equal(retryDelay(attempt, 0), retryDelays[attempt - 1]! * 0.8);
    assert.equal(retryDelay(attempt, 1), Math.round(retryDelays[attempt - 1]! * 1.2));
  }
});

test('webhooks#payloads: what is kept outlasts the last attempt of the last replay', () => {
  const longest = retryDelays.reduce((sum, _, i) => sum + retryDelay(i + 1, 1)!, 0);
  assert.ok(payloadHours * hour > limits.webhookReplayHours * hour + longest);
});

/** A fake clock: the endpoint answers as told, the schedule alone says when. */
function run(answers: (at: number) => boolean): { attempts: number[]; succeeded: boolean } {
  const attempts: number[] = [];
  for (let now = 0; ;) {
    attempts.push(now);
    if (answers(now)) return { attempts, succeeded: true };
    const delay = retryDelay(attempts.length, 0.5);
    if (delay === null) return { attempts, succeeded: false };
    now += delay;
  }
}

test('webhooks#schedule: ten attempts over 70 hours, and the first success ends them', () => {
  const dead = run(() => false);
  assert.equal(dead.attempts.length, 10);
  assert.equal(dead.succeeded, false);
  assert.equal(Math.round(dead.attempts.at(-1)! / hour), 70);
  const back = run((at) => at > 2 * hour);
  assert.deepEqual([back.attempts.length, back.succeeded], [6, true]);
});
