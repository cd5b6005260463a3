import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../../src/config.ts';
import { explain } from '../../src/explain.ts';
import { readable } from '../../src/platform/logging.ts';

const failure = (fields: object, message = 'raw') => Object.assign(new Error(message), fields);

test('what whoever runs the service can mend is told in one line', () => {
  const told: [Error, RegExp][] = [
    [failure({ code: 'EADDRINUSE', port: 8080 }), /^port 8080 is in use.*PORT/],
    [failure({ code: 'EACCES', port: 80 }), /port 80.*PORT/],
    [failure({ code: 'EACCES', path: '/data' }), /no permission for \/data/],
    [new ConfigError('PORT must be a number.'), /^PORT must be a number\.$/],
    [new Error('This store was sealed with another master key.'), /^This store was sealed/],
    [new AggregateError([new Error('connect ECONNREFUSED 127.0.0.1:5432')]), /^connect ECONNREFUSED/],
  ];
  for (const [error, pattern] of told) {
    const text = explain(error);
    assert.match(text, pattern);
    assert.ok(!text.includes('\n'), text);
  }
  assert.match(
    explain(new TypeError('x is not a function')),
    /\n.*at /s,
    'our own mistakes keep their stack',
  );
});

test('a log line for people', () => {
  const line = JSON.stringify({
    level: 'warn',
    time: '2026-11-15T20:15:30.123Z',
    pid: 1,
    env: 'env_a',
    n: 3,
    msg: 'slow down',
  });
  assert.equal(readable(line), '20:15:30 warn  slow down env=env_a n=3\n');
  const failed = JSON.stringify({
    level: 'error',
    time: '2026-11-15T20:15:30.123Z',
    msg: 'no',
    err: { message: 'why', stack: 'Error: why\n  at x' },
  });
  assert.equal(readable(failed), '20:15:30 error no why\nError: why\n  at x\n');
  assert.equal(readable('not json\n'), 'not json\n');
});
