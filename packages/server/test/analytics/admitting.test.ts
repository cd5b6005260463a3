import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plans } from '@parley/protocol';
import { createActiveUsers } from '../../src/features/analytics/active.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test('messages#order: what a user sends while the month is checked goes on in its order', async () => {
  const asked: ((verdict: string) => void)[] = [];
  const query = (_sql: string, [envs]: [number[]]) =>
    new Promise((resolve) => asked.push((verdict) => resolve(envs.map(() => ({ verdict })))));
  const active = createActiveUsers({
    db: { query } as unknown as Queryable,
    clock: systemClock,
    plans,
    catchUp: () => Promise.resolve(),
  });
  const env = { no: 1, plan: 'free' } as const;
  const order: string[] = [];
  const send = (name: string) => void active.admit(env, 7).then(() => order.push(name));
  send('first');
  await settled();
  send('second');
  asked.shift()!('known');
  await settled();
  // Now the user is known.
  send('third');
  await settled();
  for (const answer of asked.splice(0)) answer('known');
  await settled();
  assert.deepEqual(order, ['first', 'second', 'third']);
  await active.admit(env, 7);
  assert.equal(asked.length, 0, 'a known user is not looked up');
});
