import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costOf } from '@parley/protocol';
import type { ApiError } from '@parley/protocol';
import { createTurns } from '../../src/transport/turns.ts';
import { times } from '../core/tools.ts';
import { createScene } from '../support/scene.ts';
import { useService } from '../support/use.ts';

const { service, scene, db } = useService();

test('a tenant whose requests all wait for a lock leaves connections to the others', async () => {
  const other = createScene(service.url, 'other');
  const theirs = (await other.group(null, [await other.actor()])).id;
  const { id } = await scene.group(null, [await scene.actor()]);
  let answered = 0;
  const waiting: Promise<unknown>[] = [];
  await db.tx(async (holder) => {
    await holder.query('SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE', [id]);
    waiting.push(
      ...times(60, async (i) => {
        await scene.server('PATCH', `/v1/conversations/${id}`, { name: `${i}` });
        answered += 1;
      }),
    );
    const waits = async () =>
      (await db.query<{ n: number }>('SELECT count(*) AS n FROM pg_locks WHERE NOT granted'))[0]!.n;
    while ((await waits()) === 0);
    for (let i = 0; i < 10; i++) {
      assert.equal((await other.server('GET', `/v1/conversations/${theirs}`)).status, 200);
      assert.equal(
        (await other.server('PATCH', `/v1/conversations/${theirs}`, { name: `${i}` })).status,
        200,
      );
    }
    assert.ok(answered <= 40, `${answered} of 60 were answered first`);
  });
  await Promise.all(waiting);
});

test('costs: a long page stands for several short ones, a large group for many small ones', () => {
  assert.equal(costOf('users.get', { userId: 'u' }), 1);
  const page = (limit?: number) => costOf('messages.list', { conversationId: 'c', limit });
  assert.deepEqual([page(), page(200)], [2, 5]);
  assert.ok(page(10) < 1.5);
  const create = (members: number) =>
    costOf('conversations.create', { type: 'group', members: times(members, String) });
  assert.deepEqual([create(0), create(500)], [2, 22]);
  for (const name of ['messages.send', 'conversations.read', 'sync'] as const)
    assert.equal(costOf(name, {}), 0, 'batches have bounds of their own');
});

test('docs/analytics.md: two reports of an environment run at once, 16 wait, others get 429; neither its other requests nor other environments wait', async () => {
  const turns = createTurns(50);
  const report = (lane: number, work: () => Promise<unknown>) =>
    turns.of(lane, 'analytics.get', {}).turn(work);
  let running = 0;
  let most = 0;
  const finish: (() => void)[] = [];
  const work = async (): Promise<void> => {
    most = Math.max(most, (running += 1));
    await new Promise<void>((resolve) => finish.push(resolve));
    running -= 1;
  };
  const asked = times(200, () =>
    report(1, work).then(
      () => 'done',
      (error: ApiError) => error.code,
    ),
  );
  const refused = await Promise.all(asked.slice(18));
  assert.deepEqual(new Set(refused), new Set(['rate_limited']));
  await turns.of(1, 'users.get', {}).turn(() => Promise.resolve());
  await report(2, () => Promise.resolve());
  assert.equal(running, 2);
  while (finish.length > 0) {
    finish.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(
    await Promise.all(asked.slice(0, 18)),
    times(18, () => 'done'),
  );
  assert.equal(most, 2);
});

test('reports of many environments together leave most of the pool to others, and each comes to its turn', async () => {
  const turns = createTurns(10);
  let running = 0;
  let most = 0;
  const ended = new Set<number>();
  const report = (env: number) =>
    turns.of(env, 'analytics.get', {}).turn(async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      ended.add(env);
    });
  const asked = times(20, (env) => times(5, () => report(env))).flat();
  await turns.of(99, 'users.get', {}).turn(() => Promise.resolve());
  assert.ok(running > 0, 'the other environment did not wait for them');
  await Promise.all(asked);
  assert.equal(most, 2);
  assert.equal(ended.size, 20);
});
