import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRetryAfter, retryDelay, retryDelays } from '../../src/features/webhooks/schedule.ts';

const hour = 3_600_000;

test('SPEC 6, delivery rule 2: immediately, then 10 s, 1 min, 10 min, 1 h, 3 h, 6 h, 12 h, 24 h, 24 h, then no more', () => {
  const expected = [10, 60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 86_400].map((s) => s * 1000);
  assert.deepEqual(retryDelays, expected);
  expected.forEach((delay, i) => assert.equal(retryDelay(i + 1, 0.5), delay));
  assert.equal(retryDelay(10, 0.5), null);
});

test('DECISIONS, Webhooks: each delay times a random factor in 0.8 to 1.2', () => {
  for (let attempt = 1; attempt <= 9; attempt++) {
    assert.equal(retryDelay(attempt, 0), retryDelays[attempt - 1]! * 0.8);
    assert.equal(retryDelay(attempt, 1), Math.round(retryDelays[attempt - 1]! * 1.2));
  }
});

test('issue 4: Retry-After is honoured within the schedule: later, never earlier, at most the longest delay, no more attempts', () => {
  assert.equal(retryDelay(1, 0.5, 30_000), 30_000);
  assert.equal(retryDelay(2, 0.5, 30_000), 60_000);
  assert.equal(retryDelay(1, 0.5, 1_000 * hour), 24 * hour);
  assert.equal(retryDelay(10, 0.5, 30_000), null);
});

test('Retry-After: seconds or a date; anything else counts as not given', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(parseRetryAfter('120', now), 120_000);
  assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now), 60_000);
  assert.equal(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now), 0);
  for (const text of [undefined, '', 'soon', '-5', '99999999999999'])
    assert.equal(parseRetryAfter(text, now), 0);
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

test('SPEC 6, delivery rule 2: ten attempts over 70 hours, and the first success ends them', () => {
  const dead = run(() => false);
  assert.equal(dead.attempts.length, 10);
  assert.equal(dead.succeeded, false);
  assert.equal(Math.round(dead.attempts.at(-1)! / hour), 70);
  const back = run((at) => at > 2 * hour);
  assert.deepEqual([back.attempts.length, back.succeeded], [6, true]);
});
