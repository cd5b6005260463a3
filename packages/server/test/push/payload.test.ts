import { deepEqual, equal, ok } from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { retryAfter } from '../../src/platform/push/http.ts';
import { collapseId, fitNotification } from '../../src/platform/push/payload.ts';
import { notification } from './sample.ts';
import { seed } from '../../../../scripts/seed.ts';

const encode = (title: string, body: string): string => JSON.stringify({ title, body });
const fit = (title: string, body: string, max: number): { title: string; body: string } | undefined => {
  const encoded = fitNotification({ ...notification, title, body }, max, encode);
  return encoded === undefined ? undefined : (JSON.parse(encoded) as { title: string; body: string });
};
const empty = encode('', '').length;

describe('push payloads', () => {
  it('texts that fit stay as they are', () => {
    deepEqual(fit('Ada', 'Hello', empty + 8), { title: 'Ada', body: 'Hello' });
  });

  it('the body is shortened first, then the title', () => {
    deepEqual(fit('Ada', 'Hello', empty + 7), { title: 'Ada', body: 'H…' });
    deepEqual(fit('Ada', 'Hello', empty + 6), { title: 'Ada', body: '' });
    deepEqual(fit('Ada Lovelace', 'Hello', empty + 6), { title: 'Ada…', body: '' });
    equal(fit('Ada', 'Hello', empty - 1), undefined);
  });

  it('lone surrogates become the replacement character', () => {
    deepEqual(fit('a\uD83D', '\uDE00b', 4096), { title: 'a\uFFFD', body: '\uFFFDb' });
  });

  it('whatever the texts, the result fits, is well formed, and begins like them', () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(text, text, fc.integer({ min: empty, max: 400 }), (title, body, max) => {
        const fitted = fit(title, body, max);
        ok(fitted !== undefined);
        ok(Buffer.byteLength(encode(fitted.title, fitted.body)) <= max);
        for (const [shown, whole] of [
          [fitted.title, title],
          [fitted.body, body],
        ] as const) {
          ok(shown.isWellFormed());
          ok(
            shown === whole || shown === '' || (shown.endsWith('…') && whole.startsWith(shown.slice(0, -1))),
          );
        }
        // As much as fits is shown: one more code point of the body would be too much.
        if (fitted.body === body || fitted.title !== title) return;
        const count = fitted.body === '' ? 0 : Array.from(fitted.body).length - 1;
        const more = Array.from(body)
          .slice(0, count + 1)
          .join('');
        ok(more === body || Buffer.byteLength(encode(title, `${more}…`)) > max);
      }),
      { seed: seed('fitting texts') },
    );
  });

  it('collapse ids: short keys are kept, others hashed into the limit and the alphabet', () => {
    equal(collapseId('conv_1', 32), 'conv_1');
    for (const key of ['k'.repeat(33), 'with space', 'ü', '']) {
      const id = collapseId(key, 32);
      ok(/^[\w-]{32}$/.test(id));
      equal(collapseId(key, 32), id);
    }
  });

  it('RFC 9110 10.2.3: Retry-After in seconds and as a date, never negative, at most an hour', () => {
    const now = Date.parse('2030-05-01T12:00:00Z');
    const cases: [string | string[] | undefined, number | undefined][] = [
      ['0', 0],
      ['120', 120_000],
      ['99999999999', 3600_000],
      ['Wed, 01 May 2030 12:00:10 GMT', 10_000],
      ['Wed, 01 May 2030 11:00:00 GMT', 0],
      [['5', '6'], 5000],
      ['soon', undefined],
      ['', undefined],
      [undefined, undefined],
    ];
    for (const [header, expected] of cases) equal(retryAfter(header, now).retryAfterMs, expected);
  });
});
