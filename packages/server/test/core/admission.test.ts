import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countedFirst } from '../../src/log/admission.ts';
import { blocked } from '../../src/log/lanes.ts';
import type { Db, Tx } from '../../src/platform/postgres/db.ts';

/** Who must be counted in the month before something of theirs is committed, in a store that says what the test wants. */

interface Item {
  n: number;
  env: number;
  conversationId: string;
  user: number | null;
  ceiling?: number | null;
}

function scene(known: number[], verdict = 'room') {
  const done: string[] = [];
  const tx = {
    query: (sql: string, values: unknown[]) => {
      if (sql.includes('month_admits')) return Promise.resolve([{ verdict }]);
      done.push(`count ${values[1] as number}`);
      return Promise.resolve([]);
    },
  } as unknown as Tx;
  const db = {
    query: (_sql: string, [, users]: [number[], number[]]) =>
      Promise.resolve(users.map((user) => ({ known: known.includes(user) }))),
    tx: <T>(run: (tx: Tx) => Promise<T>) => run(tx),
  } as unknown as Db;
  const locked = new Set<string>();
  const commit = (items: Item[]) =>
    countedFirst<Item, number | Error>(
      db,
      items,
      (item) => item.user,
      (on, some) => {
        done.push(`${on === tx ? 'alone' : 'together'} ${some.map((i) => i.n).join(' ')}`);
        return Promise.resolve(some.map((i) => (locked.delete(i.conversationId) ? blocked : i.n)));
      },
      (answer) => !(answer instanceof Error),
    );
  return { done, commit, locked };
}

let n = 0;
const item = (user: number | null, ceiling: number | null = 10, conversationId = 'a'): Item => ({
  ...{ n: n++, env: 1, conversationId, user, ceiling },
});

test('SPEC 8: only users who are new in the month go one by one, and everything keeps its order', async () => {
  n = 0;
  const { done, commit } = scene([7, 8]);
  const answers = await commit([item(1, null), item(7), item(2), item(8), item(null), item(3), item(3)]);
  assert.deepEqual(answers, [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(done, [
    'together 0 1',
    'alone 2',
    'count 2',
    'together 3 4',
    'alone 5',
    'count 3',
    'alone 6',
    'count 3',
  ]);
});

test('SPEC 8: a month that is full refuses whoever is new, and nobody else', async () => {
  n = 0;
  const { done, commit } = scene([7], 'full');
  const [first, second] = await commit([item(7), item(2)]);
  assert.equal(first, 0);
  assert.equal((second as { code?: string }).code, 'plan_limit_reached');
  assert.deepEqual(done, ['together 0']);
});

test('nothing overtakes an item of its conversation that could not be committed', async () => {
  n = 0;
  const { done, commit, locked } = scene([]);
  locked.add('a');
  const answers = await commit([item(1), item(2, null), item(1), item(3, null, 'b')]);
  assert.deepEqual(answers, [blocked, blocked, blocked, 3]);
  assert.deepEqual(done, ['alone 0', 'together 3'], 'and who was not served is not counted');
});
