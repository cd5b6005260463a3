import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createWordService } from '../../src/features/words/service.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';

/** words#cost: when the automaton of an environment is built. */

/** A store with one list of one word, whose answers wait for `gate`. */
function store() {
  const state = { reads: 0, gate: Promise.resolve() };
  const db: Queryable = {
    query: async <R extends object>() => {
      state.reads++;
      await state.gate;
      const row = { name: 'a', action: 'reject', conversations: 'all', entries: '["frightful"]' };
      return [row] as unknown as R[];
    },
  };
  const { of } = createWordService(db);
  return { state, of: (words: number, no = 1) => of({ no, words }) };
}

test('words#cost: an automaton is built once for a version, also while sessions know different ones', async () => {
  const { state, of } = store();
  assert.equal(of(0), null, 'an environment that never had a list');
  const first = await of(1);
  assert.ok(first!.find('how frightful', true).reject);
  assert.equal(await of(1), first);
  const second = await of(2);
  assert.notEqual(second, first);
  for (const version of [1, 2, 1, 2]) assert.equal(await of(version), second, 'the newer serves all');
  assert.equal(state.reads, 2);
  await of(1, 2);
  assert.equal(state.reads, 3, 'each environment has its own');
});

test('words#cost: of versions that come while one is built, the last is built, and everybody who knows one of them waits for it', async () => {
  const { state, of } = store();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.gate = promise;
  const first = of(1);
  await setImmediate();
  assert.equal(state.reads, 1);
  const later = [2, 3, 4, 5, 1, 5].map(async (version) => of(version));
  await setImmediate();
  assert.equal(state.reads, 1, 'one at a time');
  resolve();
  const built = new Set(await Promise.all(later));
  assert.equal(built.size, 1);
  assert.ok(!built.has(await first), 'it was read before the later versions were there');
  assert.equal(state.reads, 2);
  assert.equal(await of(5), [...built][0]);
  assert.equal(state.reads, 2);
});

test('words#cost: lists that could not be read are read again by the next message', async () => {
  const { state, of } = store();
  state.gate = Promise.reject(new Error('no store'));
  const failing = [of(1)!, of(2)!];
  for (const one of failing) await assert.rejects(one, /no store/);
  state.gate = Promise.resolve();
  assert.ok((await of(2)!).find('frightful', true).reject);
  assert.equal(state.reads, 2);
});
