import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryKeeper } from '../../src/platform/memory.ts';
import { StandingTime } from '../support/time.ts';

test('docs/isolation.md: memory that V8 keeps after a busy time is given back when there is little to do, and only then', () => {
  const time = new StandingTime();
  const changes: boolean[] = [];
  const usage = { resident: 200, known: 100, busy: 0.1 };
  const bytes = (): typeof usage => ({ ...usage, resident: usage.resident * 1e6, known: usage.known * 1e6 });
  const keeper = createMemoryKeeper(time.timers, bytes, (on) => changes.push(on));
  keeper.start();
  const after = (change: Partial<typeof usage>): boolean[] => {
    Object.assign(usage, change);
    time.advance(10_000);
    return changes.splice(0);
  };
  assert.deepEqual(after({}), []);
  assert.deepEqual(after({ resident: 600, known: 500, busy: 0.9 }), [], 'all of it is in use');
  assert.deepEqual(after({ known: 150 }), [], 'the heap has shrunk, but there is much to do');
  assert.deepEqual(after({ busy: 0.3 }), [true]);
  assert.deepEqual(after({}), [], 'it stays on until a collection has come');
  assert.deepEqual(after({ resident: 260 }), [false]);
  keeper.stop();
  assert.deepEqual(after({ resident: 600 }), []);
});
