import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStat } from '../src/procfs.ts';
import { format, formatSpread, Histogram, median, ratios, spread } from '../src/stats.ts';

test('quantiles are right within one per cent, the maximum exactly', () => {
  const histogram = new Histogram();
  for (let us = 1; us <= 100_000; us++) histogram.record(us);
  for (const q of [0.01, 0.5, 0.9, 0.99]) {
    const exact = q * 100_000;
    assert.ok(Math.abs(histogram.quantile(q) / exact - 1) <= 0.01, `${q}: ${histogram.quantile(q)}`);
  }
  assert.deepEqual(
    { count: histogram.summary().count, max: histogram.summary().max },
    { count: 100_000, max: 100 },
  );
  histogram.clear();
  assert.equal(histogram.summary().count, 0);
  assert.ok(Number.isNaN(histogram.quantile(0.5)));
});

test('one slow answer among a thousand is the maximum and not the p99', () => {
  const histogram = new Histogram();
  for (let i = 0; i < 999; i++) histogram.record(100);
  histogram.record(5_000_000);
  const { p99, max } = histogram.summary();
  assert.ok(p99 < 0.11);
  assert.equal(max, 5_000);
});

test('times outside the buckets are kept at their edge', () => {
  const histogram = new Histogram();
  histogram.record(0);
  histogram.record(1e12);
  assert.equal(histogram.summary().max, 1e9);
  assert.ok(histogram.quantile(0.01) <= 1.01);
});

test('median, range and ratios by round', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
  assert.equal(median([NaN, 2]), 2);
  assert.deepEqual(spread([2, 3, 1]), { median: 2, low: 1, high: 3 });
  assert.deepEqual(ratios([10, 30, 20], [10, 10, 10]), { median: 2, low: 1, high: 3 });
  assert.deepEqual(ratios([10, 30, 99], [10, 10]), { median: 2, low: 1, high: 3 });
  assert.ok(Number.isNaN(ratios([1], []).median));
});

test('numbers are written with three digits', () => {
  assert.equal(format(0.012345), '0.0123');
  assert.equal(format(12.345), '12.3');
  assert.equal(format(12_345.6), '12,346');
  assert.equal(format(NaN), '–');
  assert.equal(formatSpread({ median: 2, low: 2, high: 2 }), '2');
  assert.equal(formatSpread({ median: 2, low: 1, high: 3 }), '2 (1–3)');
});

test('/proc/<pid>/stat: names with brackets and blanks, own time and that of ended children', () => {
  const fields = [
    'S',
    '41',
    ...new Array<string>(9).fill('0'),
    '10',
    '20',
    '3',
    '4',
    ...new Array<string>(30).fill('0'),
  ];
  assert.deepEqual(parseStat(`42 (a ) b) ${fields.join(' ')}`), {
    pid: 42,
    name: 'a ) b',
    parent: 41,
    ticks: 37,
  });
});
