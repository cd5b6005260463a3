import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elapsed, markedText, MarkFinder, senderAt, timeAt, wrap } from '../src/load/mark.ts';

const find = (finder: MarkFinder, text: string, start = 0): number => {
  const bytes = Buffer.from(text);
  return finder.find(bytes, start, bytes.length);
};

test('a text carries its time and sender through JSON and XML unchanged', () => {
  const text = markedText(1_234_567.8, 42);
  assert.equal(text.length, 64);
  assert.equal(JSON.stringify(text), `"${text}"`);
  assert.doesNotMatch(text, /[<>&'"]/);
  const bytes = Buffer.from(`{"text":"${text}"}`);
  const at = new MarkFinder().find(bytes, 0, bytes.length);
  assert.equal(timeAt(bytes, at), 1_234_567);
  assert.equal(senderAt(bytes, at), 42);
});

test('a mark is found where the last one was, and where it was not', () => {
  const finder = new MarkFinder();
  assert.equal(find(finder, 'abc~1'), 3);
  assert.equal(find(finder, 'xyz~2'), 3);
  assert.equal(find(finder, 'a~2'), 1);
  assert.equal(find(finder, '__a~2', 2), 3);
  assert.equal(find(finder, 'none'), -1);
});

test('a mark beyond the frame’s end is another frame’s', () => {
  const bytes = Buffer.from('abcd~1');
  const finder = new MarkFinder();
  assert.equal(finder.find(bytes, 0, 6), 4);
  assert.equal(finder.find(bytes, 0, 4), -1);
});

test('elapsed time survives the wrap of the clock', () => {
  assert.equal(elapsed(1_500, 1_000), 500);
  assert.equal(elapsed(wrap + 200, wrap - 300), 500);
});
