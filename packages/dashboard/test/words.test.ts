import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteServerDate, serverNow } from '../browser/api/clock.ts';
import { browserName } from '../browser/ui/agent.ts';
import { compact, percent, plain } from '../browser/ui/figures.ts';
import { distance } from '../browser/ui/moments.ts';

/** What the pages make of moments and of user agents. */

const now = Date.parse('2026-03-01T12:00:00Z');
const second = 1_000;
const minute = 60 * second;
const day = 24 * 60 * minute;

describe('relative times', () => {
  it('the past is never ahead, and the future never behind', () => {
    for (let ms = 1; ms < 400 * day; ms = Math.ceil(ms * 1.7)) {
      assert.doesNotMatch(distance(now - ms, now), /^in |tomorrow/, `${ms} ms ago`);
      assert.doesNotMatch(distance(now + ms, now), /ago|yesterday/, `in ${ms} ms`);
    }
    assert.equal(distance(now - 7 * second, now), '7 sec. ago');
    assert.equal(distance(now - 90 * second, now), '1 min. ago');
    assert.equal(distance(now - 26 * 60 * minute, now), 'yesterday');
    assert.equal(distance(now + 3 * minute, now), 'in 3 min.');
  });

  it('what a clock that is a little behind calls the future is now', () => {
    for (const ms of [0, 1, 7 * second, minute - 1]) assert.equal(distance(now + ms, now), 'now');
  });

  it('a clock that is an hour wrong is corrected by the service’s; a few seconds are left alone', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now });
    const serverIs = (ms: number) => noteServerDate(new Date(now + ms).toUTCString());
    for (const ms of [60 * minute, -60 * minute]) {
      serverIs(ms);
      assert.equal(serverNow(), now + ms);
      assert.equal(distance(now + ms, serverNow()), 'now');
    }
    serverIs(3 * second);
    assert.equal(serverNow(), now);
    serverIs(60 * minute);
    noteServerDate(null);
    noteServerDate('no date');
    assert.equal(serverNow(), now + 60 * minute, 'an answer without a date changes nothing');
  });
});

it('numbers are written in English', () => {
  assert.deepEqual(
    [0, 7.126, 999, 1_000, 12_345.6, 1_234_567].map((value) => plain(value)),
    ['0', '7.13', '999', '1,000', '12,345.6', '1,234,567'],
  );
  assert.deepEqual(
    [0, 999, 1_000, 12_345, 999_940, 999_960, 2_500_000, 3e9].map((value) => compact(value)),
    ['0', '999', '1K', '12.3K', '999.9K', '1M', '2.5M', '3B'],
  );
  assert.deepEqual([percent(0), percent(1 / 3), percent(1 / 3, 2)], ['0%', '33.3%', '33.33%']);
});

it('a browser is called by its name', () => {
  const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  for (const [agent, name] of [
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/131.0.0.0 Safari/537.36`,
      'Chrome on Windows',
    ],
    [`Mozilla/5.0 (X11; Linux x86_64) ${webkit} HeadlessChrome/131.0.0.0 Safari/537.36`, 'Chrome on Linux'],
    [
      `Mozilla/5.0 (Windows NT 10.0) ${webkit} Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0`,
      'Edge on Windows',
    ],
    [
      `Mozilla/5.0 (Linux; Android 14; Pixel 8) ${webkit} Chrome/131.0.0.0 Mobile Safari/537.36`,
      'Chrome on Android',
    ],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0', 'Firefox on Linux'],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 14_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15',
      'Safari on a Mac',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0 Mobile/15E148 Safari/604.1',
      'Chrome on iPhone',
    ],
    ['curl/8.11.0', 'curl/8.11.0'],
    ['', ''],
  ] as const)
    assert.equal(browserName(agent), name);
});
