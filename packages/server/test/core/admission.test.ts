import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commitCounted } from '../../src/log/admission.ts';
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

function scene(known: number[], room = 100) {
  const done: string[] = [];
  let counted = 0;
  const count = (users: number[]): void => {
    counted += users.length;
    known.push(...users);
    done.push(`count ${users.join(' ')}`);
  };
  const fresh = (users: number[]): number[] => [...new Set(users.filter((user) => !known.includes(user)))];
  const tx = {
    query: (sql: string, [, users]: [number, number | number[]]) => {
      const all = [users].flat();
      if (sql.includes('month_room')) return Promise.resolve([{ counted, fresh: fresh(all) }]);
      if (!sql.includes('month_admits')) return Promise.resolve([count(all)]);
      const verdict = fresh(all).length === 0 ? 'known' : counted < room ? 'room' : 'full';
      return Promise.resolve([{ verdict }]);
    },
  } as unknown as Tx;
  const db = {
    query: (_sql: string, [, users]: [number[], number[]]) =>
      Promise.resolve(users.map((user) => ({ known: known.includes(user) }))),
    tx: <T>(run: (tx: Tx) => Promise<T>) => run(tx),
  } as unknown as Db;
  const locked = new Set<string>();
  const refused = new Set<number>();
  const commit = (items: Item[]) =>
    commitCounted<Item, number | Error>(
      {
        db,
        userOf: (item) => item.user,
        commit: (on, some) => {
          done.push(`${on === tx ? 'counting' : 'plain'} ${some.map((i) => i.n).join(' ')}`);
          return Promise.resolve(
            some.map((i) =>
              locked.delete(i.conversationId) ? blocked : refused.has(i.n) ? new Error('no') : i.n,
            ),
          );
        },
        counts: (answer) => !(answer instanceof Error),
      },
      items.map((one) => (typeof one.ceiling === 'number' ? { ...one, ceiling: room } : one)),
    );
  return { done, commit, locked, refused };
}

let n = 0;
const item = (user: number | null, of: Partial<Item> = {}): Item => ({
  ...{ n: n++, env: 1, conversationId: 'a', user, ceiling: 0 },
  ...of,
});
const codes = (answers: unknown[]): unknown[] =>
  answers.map((answer) =>
    answer instanceof Error ? ((answer as { code?: string }).code ?? answer.message) : answer,
  );

test('SPEC 8: with room in the month an environment’s items share a transaction, in their order, and those who acted are counted', async () => {
  n = 0;
  const { done, commit, refused } = scene([7]);
  refused.add(4);
  const answers = await commit([
    item(1, { ceiling: null }),
    item(7),
    item(2),
    item(9, { env: 2, ceiling: null }),
    item(3),
    item(null),
    item(2),
  ]);
  assert.deepEqual(codes(answers), [0, 1, 2, 3, 'no', 5, 6]);
  assert.deepEqual(done, ['plain 3', 'counting 0 1 2 4 5 6', 'count 2']);
  done.length = 0;
  assert.deepEqual(await commit([item(2), item(7)]), [7, 8]);
  assert.deepEqual(done, ['plain 7 8'], 'who is counted needs no transaction');
});

test('SPEC 8: a month that is nearly full is filled exactly, and nobody is refused for one who did not act', async () => {
  n = 0;
  const { done, commit, refused } = scene([7], 1);
  refused.add(1);
  const answers = await commit([item(7), item(2), item(3), item(4), item(7)]);
  assert.deepEqual(codes(answers), [0, 'no', 2, 'plan_limit_reached', 4]);
  assert.deepEqual(done, ['plain 0', 'counting 1', 'counting 2', 'count 3', 'plain 4']);
});

test('one by one: nothing overtakes an item of its conversation that could not be committed, and twenty are enough for a turn', async () => {
  n = 0;
  const { done, commit, locked } = scene([], 1);
  locked.add('a');
  const answers = await commit([
    item(1),
    item(2, { ceiling: null }),
    item(1),
    item(3, { conversationId: 'b' }),
    ...Array.from({ length: 20 }, () => item(3, { conversationId: 'c' })),
  ]);
  assert.deepEqual(answers.slice(0, 4), [blocked, blocked, blocked, 3]);
  assert.deepEqual(
    done.slice(0, 3),
    ['counting 0', 'counting 3', 'count 3'],
    'who was not served is not counted',
  );
  assert.deepEqual(answers.slice(20), [blocked, blocked, blocked, blocked]);
  assert.ok(answers.slice(4, 20).every((answer) => typeof answer === 'number'));
});
