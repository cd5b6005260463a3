import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { seed } from '../../../../scripts/seed.ts';
import { jsonOf } from '../../src/transport/rest/reply.ts';
import { pieceBytes } from '../../src/transport/rest/slow-clients.ts';
import type { WrittenBody } from '../../src/transport/rest/slow-clients.ts';

const whole = async (body: string | WrittenBody): Promise<string> =>
  typeof body === 'string' ? body : (await buffer(body)).toString();

test('a small answer is one text, whatever it is', () => {
  for (const body of [
    { id: 'x' },
    { data: [], hasMore: false },
    { data: [{ a: 1 }, { a: 'ö' }] },
    { data: 'text' },
  ]) {
    const text = jsonOf(body);
    assert.ok(typeof text === 'string');
    assert.deepEqual(JSON.parse(text), body);
  }
});

test('a large page is written in pieces', async () => {
  const body = {
    data: Array.from({ length: 200 }, (_, i) => ({ seq: i, text: '€"\n'.repeat(1_000) })),
    nextCursor: 'next',
  };
  const pieces = jsonOf(body);
  assert.ok(typeof pieces !== 'string');
  let count = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of pieces as AsyncIterable<Buffer>) {
    count += 1;
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  assert.deepEqual(JSON.parse(text), body);
  assert.ok(count >= text.length / pieceBytes / 2 && count > 5, `${count} pieces`);
  assert.ok(pieces.bytes > text.length / 2 && pieces.bytes < text.length * 2, 'its size was foreseen');
});

test('whatever a page holds, its pieces are its JSON', async () => {
  const page = fc.record({
    data: fc.array(fc.record({ text: fc.string({ unit: 'binary', maxLength: 40_000, size: 'max' }) }), {
      maxLength: 8,
    }),
    hasMore: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(page, async (body) => {
      assert.equal(await whole(jsonOf(body)), JSON.stringify(body));
    }),
    { numRuns: 30, seed: seed('pieces of a page') },
  );
});
