import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBatcher } from '../../src/platform/flow/batcher.ts';
import { times } from './tools.ts';

/** A run that the test lets go by hand. */
function gate() {
  const batches: { items: number[]; finish: (error?: Error) => void }[] = [];
  let arrived: (() => void) | undefined;
  return {
    batches,
    run: (items: number[]) =>
      new Promise<number[]>((resolve, reject) => {
        batches.push({
          items,
          finish: (error) => (error ? reject(error) : resolve(items.map((i) => i * 10))),
        });
        arrived?.();
      }),
    /** Resolves when the nth batch is under way. */
    reached: async (n: number): Promise<void> => {
      while (batches.length < n) await new Promise<void>((resolve) => (arrived = resolve));
    },
  };
}
const roomy = { maxBatch: 100, maxWaiting: 100 };

describe('the batcher', () => {
  test('gathers what arrives while a batch is under way, in order, and answers each its own', async () => {
    const { run, batches, reached } = gate();
    const batcher = createBatcher<number, number>({ ...roomy, run });
    const first = batcher.add(1);
    await reached(1);
    const rest = [2, 3, 4].map((i) => batcher.add(i));
    assert.equal(batcher.waiting, 3);
    batches[0]!.finish();
    assert.equal(await first, 10);
    await reached(2);
    assert.deepEqual(batches[1]!.items, [2, 3, 4]);
    batches[1]!.finish();
    assert.deepEqual(await Promise.all(rest), [20, 30, 40]);
  });

  test('what is added in one turn goes out together', async () => {
    const { run, batches, reached } = gate();
    const batcher = createBatcher<number, number>({ ...roomy, run });
    const all = times(5, (i) => batcher.add(i));
    await reached(1);
    assert.deepEqual(batches[0]!.items, [0, 1, 2, 3, 4]);
    batches[0]!.finish();
    await Promise.all(all);
  });

  test('a batch is never larger than its bound', async () => {
    const sizes: number[] = [];
    const batcher = createBatcher<number, number>({
      maxBatch: 10,
      maxWaiting: 100,
      run: (items) => {
        sizes.push(items.length);
        return Promise.resolve(items);
      },
    });
    assert.deepEqual(
      await Promise.all(times(25, (i) => batcher.add(i))),
      times(25, (i) => i),
    );
    assert.deepEqual(sizes, [10, 10, 5]);
  });

  test('at the bound of waiting items the next is refused at once, and the others are not lost', async () => {
    const { run, batches, reached } = gate();
    const batcher = createBatcher<number, number>({ maxBatch: 100, maxWaiting: 3, run });
    const first = batcher.add(0);
    await reached(1);
    const waiting = [1, 2, 3].map((i) => batcher.add(i));
    await assert.rejects(batcher.add(4), { code: 'service_unavailable' });
    batches[0]!.finish();
    await reached(2);
    batches[1]!.finish();
    assert.deepEqual(await Promise.all([first, ...waiting]), [0, 10, 20, 30]);
  });

  test('an error for one item is that item’s alone', async () => {
    const batcher = createBatcher<number, number>({
      ...roomy,
      run: (items) => Promise.resolve(items.map((i) => (i === 2 ? new Error('two') : i))),
    });
    const results = await Promise.allSettled([1, 2, 3].map((i) => batcher.add(i)));
    assert.deepEqual(
      results.map((r) => r.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });

  test('api#batches: a bad item that fails the whole batch does not fail its neighbours', async () => {
    const ran: number[][] = [];
    const batcher = createBatcher<number, number>({
      ...roomy,
      badItem: (error) => (error as Error).message === 'bad',
      run: (items) => {
        ran.push(items);
        return items.includes(2) ? Promise.reject(new Error('bad')) : Promise.resolve(items);
      },
    });
    const results = await Promise.allSettled([0, 1, 2, 3].map((i) => batcher.add(i)));
    assert.deepEqual(
      results.map((r) => (r.status === 'fulfilled' ? r.value : (r.reason as Error).message)),
      [0, 1, 'bad', 3],
    );
    assert.deepEqual(ran, [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3]], 'in halves');
    assert.equal(await batcher.add(4), 4, 'and the next batch runs as ever');
  });

  test('a failure that is nobody’s fault (the store is gone) fails all, once', async () => {
    let runs = 0;
    const batcher = createBatcher<number, number>({
      ...roomy,
      run: () => {
        runs++;
        return Promise.reject(new Error('gone'));
      },
    });
    const results = await Promise.allSettled([1, 2, 3].map((i) => batcher.add(i)));
    assert.deepEqual(
      results.map((r) => r.status),
      ['rejected', 'rejected', 'rejected'],
    );
    assert.equal(runs, 1);
  });

  test('an answer that takes longer than the batch holds up neither the batch nor the next', async () => {
    let late: (value: number) => void = () => undefined;
    const batcher = createBatcher<number, number>({
      ...roomy,
      run: (items) =>
        Promise.resolve(items.map((i) => (i === 1 ? new Promise<number>((resolve) => (late = resolve)) : i))),
    });
    const first = batcher.add(1);
    assert.equal(await batcher.add(2), 2);
    assert.equal(await batcher.add(3), 3);
    await batcher.idle();
    late(10);
    assert.equal(await first, 10);
  });

  test('when more waits than a batch takes, groups take turns, each in its own order', async () => {
    const { run, batches, reached } = gate();
    const turns = { groupOf: (item: number) => Math.floor(item / 100), maxWaiting: 50 };
    const batcher = createBatcher<number, number>({ maxBatch: 6, maxWaiting: 100, turns, run });
    const all = [batcher.add(0)];
    await reached(1);
    all.push(
      ...times(20, (i) => batcher.add(100 + i)),
      batcher.add(200),
      batcher.add(300),
      batcher.add(301),
      batcher.add(302),
      batcher.add(303),
    );
    const expected = [
      [100, 101, 200, 300, 301, 102],
      [302, 303, 103, 104, 105, 106],
      times(6, (i) => 107 + i),
    ];
    for (const [i, items] of expected.entries()) {
      batches[i]!.finish();
      await reached(i + 2);
      assert.deepEqual(batches[i + 1]!.items, items);
    }
    for (let i = 4; i < 6; i++) {
      batches[i - 1]!.finish();
      await reached(i + 1);
    }
    batches[5]!.finish();
    await Promise.all(all);
  });

  test('groups that outnumber a batch are all served in turn', async () => {
    const { run, batches, reached } = gate();
    const turns = { groupOf: (item: number) => item % 10, maxWaiting: 50 };
    const batcher = createBatcher<number, number>({ maxBatch: 4, maxWaiting: 100, turns, run });
    const all = [batcher.add(0)];
    await reached(1);
    all.push(...times(20, (i) => batcher.add(i)));
    for (let i = 0; i < 5; i++) {
      batches[i]!.finish();
      await reached(i + 2);
    }
    assert.deepEqual(
      batches.slice(1, 6).flatMap((b) => b.items),
      times(20, (i) => i),
    );
    batches[5]!.finish();
    await Promise.all(all);
  });

  test('a group at its bound is refused, and the others are not', async () => {
    const { run, batches, reached } = gate();
    const turns = { groupOf: (item: number) => Math.floor(item / 100), maxWaiting: 2 };
    const batcher = createBatcher<number, number>({ maxBatch: 10, maxWaiting: 4, turns, run });
    const first = batcher.add(0);
    await reached(1);
    const waiting = [100, 101, 200].map((i) => batcher.add(i));
    await assert.rejects(batcher.add(102), { code: 'service_unavailable' });
    waiting.push(batcher.add(300));
    await assert.rejects(batcher.add(400), { code: 'service_unavailable' });
    assert.equal(batcher.waiting, 4);
    batches[0]!.finish();
    await reached(2);
    batches[1]!.finish();
    await Promise.all([first, ...waiting]);
    assert.equal(batcher.waiting, 0);
  });

  test('idle: at once when there is nothing, else when the last batch has answered', async () => {
    const { run, batches, reached } = gate();
    const batcher = createBatcher<number, number>({ ...roomy, run });
    await batcher.idle();
    const first = batcher.add(1);
    let idle = false;
    const whenIdle = batcher.idle().then(() => (idle = true));
    await reached(1);
    const second = batcher.add(2);
    batches[0]!.finish();
    await first;
    await reached(2);
    assert.equal(idle, false);
    batches[1]!.finish();
    await second;
    await whenIdle;
    await batcher.idle();
  });
});
