import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { blocked, createLanedBatcher } from '../../src/log/lanes.ts';
import type { Blocked } from '../../src/log/lanes.ts';
import { StandingTime } from '../support/time.ts';
import { times } from './tools.ts';

/** What waits for a conversation that another transaction holds; time passes only when the test says so. */

interface Item {
  env: number;
  conversationId: string;
  n: number;
}

function scene() {
  const time = new StandingTime();
  /** Conversations that somebody holds. */
  const held = new Set<string>();
  const calls: { n: number[]; waitMs: number | null }[] = [];
  const committed: number[] = [];
  let fail: ((items: Item[]) => Error | null | Promise<Error | null>) | undefined;
  const batcher = createLanedBatcher<Item, number>({
    maxBatch: 1_000,
    maxWaiting: 20_000,
    timers: time.timers,
    commit: async (items, waitMs) => {
      calls.push({ n: items.map((i) => i.n), waitMs });
      const error = fail && (await fail(items));
      if (error) throw error;
      return items.map((item): number | Blocked => {
        if (held.has(item.conversationId)) return blocked;
        committed.push(item.n);
        return item.n;
      });
    },
  });
  let n = 0;
  const outcomes: (number | string)[] = [];
  return {
    time,
    held,
    calls,
    committed,
    batcher,
    outcomes,
    send: (conversationId: string, env = 1): number => {
      const item = { env, conversationId, n: n++ };
      batcher.add(item).then(
        (value) => (outcomes[item.n] = value),
        (error: { code?: string; message: string }) => (outcomes[item.n] = error.code ?? error.message),
      );
      return item.n;
    },
    failing: (by: typeof fail) => (fail = by),
  };
}

const sqlError = (code: string): Error => Object.assign(new Error(code), { code });

describe('a conversation that another transaction holds', () => {
  test('waits alone: all others are committed at once, and its own follow in their order', async () => {
    const { time, held, send, committed, outcomes, batcher } = scene();
    held.add('a');
    const first = send('a');
    const others = [send('b'), send('c')];
    await time.pass(0);
    const second = send('a');
    others.push(send('b'));
    await time.pass(0);
    assert.deepEqual(committed, others);
    assert.equal(batcher.waiting, 2);
    held.clear();
    await time.pass(200);
    assert.deepEqual(committed, [...others, first, second]);
    assert.equal(batcher.waiting, 0);
    assert.deepEqual(outcomes, [0, 1, 2, 3, 4]);
    const last = send('a');
    await time.pass(0);
    assert.equal(committed.at(-1), last, 'and then it is one of all again');
  });

  test('is tried again after 2, 4 and 8 ms together with others, then alone and waiting for the lock, at last every 100 ms', async () => {
    const { time, held, send, calls } = scene();
    held.add('a').add('b');
    const [a, b] = [send('a'), send('b')];
    const tries: [number, number[], number | null][] = [];
    for (let ms = 0; ms <= 420; ms++) {
      await time.pass(ms === 0 ? 0 : 1);
      for (const call of calls.splice(0)) tries.push([ms, call.n, call.waitMs]);
    }
    assert.deepEqual(tries, [
      [0, [a, b], null],
      [2, [a, b], null],
      [6, [a, b], null],
      [14, [a, b], null],
      ...[30, 62, 126, 226, 326].flatMap((ms): [number, number[], number | null][] => [
        [ms, [a], 50],
        [ms, [b], 50],
      ]),
    ]);
  });

  test('keeps nobody waiting for more than 5 s: then it is 503 with retryAfterMs', async () => {
    const { time, held, batcher } = scene();
    held.add('a');
    const refused = assert.rejects(
      batcher.add({ env: 1, conversationId: 'a', n: 0 }),
      (error: { code: string; retryAfterMs: number }) => {
        assert.equal(error.code, 'service_unavailable');
        assert.ok(error.retryAfterMs > 0);
        return true;
      },
    );
    await time.pass(5_100);
    await refused;
    assert.equal(batcher.waiting, 0);
    await batcher.idle();
  });

  test('has room for 500, its environment for 2,500, and what is beyond is refused at once', async () => {
    const { time, held, send, outcomes } = scene();
    const names = times(8, (i) => `c${i}`);
    for (const name of names) held.add(name);
    for (const name of names) for (let i = 0; i < 501; i++) send(name);
    const other = send('c0', 2);
    await time.pass(0);
    assert.equal(outcomes.filter((o) => o === 'service_unavailable').length, 8 * 501 - 2_500);
    assert.equal(outcomes.slice(0, 501).filter((o) => o === 'service_unavailable').length, 1);
    assert.equal(outcomes[other], undefined, 'another environment has room');
    held.clear();
    await time.pass(1_000);
    assert.equal(outcomes[other], other);
    assert.equal(outcomes.filter((o) => typeof o === 'number').length, 2_501);
  });

  test('a thousand that are hopeless do not keep one waiting that is held now and then', async () => {
    const { time, held, send, outcomes } = scene();
    for (let i = 0; i < 1_000; i++) held.add(`c${i}`);
    for (let i = 0; i < 1_000; i++) send(`c${i}`);
    await time.pass(1_000);
    held.add('hot');
    const hot = send('hot');
    await time.pass(20);
    held.delete('hot');
    await time.pass(20);
    assert.equal(outcomes[hot], hot);
  });

  test('idle waits for the lanes too', async () => {
    const { time, held, send, batcher } = scene();
    held.add('a');
    send('a');
    let idle = false;
    const whenIdle = batcher.idle().then(() => (idle = true));
    await time.pass(50);
    assert.equal(idle, false);
    held.clear();
    await time.pass(100);
    await whenIdle;
  });
});

describe('what an error says is decided by its class', () => {
  for (const code of ['55P03', '40P01'])
    test(`${code} (a lock that nobody thought of): the batch is tried again, none is run for being bad`, async () => {
      const { time, send, calls, outcomes, failing } = scene();
      failing(() => sqlError(code));
      const all = [send('a'), send('a'), send('b')];
      await time.pass(0);
      assert.deepEqual(calls.splice(0), [{ n: all, waitMs: null }]);
      failing(undefined);
      await time.pass(2);
      assert.deepEqual(calls, [{ n: all, waitMs: null }]);
      assert.deepEqual(outcomes, all);
    });

  for (const code of ['57014', '08006', 'XX000'])
    test(`${code}: everybody of the batch is told, and nothing is tried again`, async () => {
      const { time, send, calls, outcomes, failing } = scene();
      failing(() => sqlError(code));
      for (const name of ['a', 'b', 'c']) send(name);
      await time.pass(1_000);
      assert.equal(calls.length, 1);
      assert.deepEqual(outcomes, [code, code, code]);
    });

  for (const code of ['22021', '23502'])
    test(`api#batches: ${code} is some bad row: its neighbours are committed, in a lane too`, async () => {
      const { time, held, send, outcomes, failing } = scene();
      failing((items) => (items.some((i) => i.n === 1) ? sqlError(code) : null));
      for (const name of ['a', 'a', 'b', 'c']) send(name);
      await time.pass(0);
      assert.deepEqual(outcomes, [0, code, 2, 3]);
      failing((items) => (items.some((i) => i.n === 5) && !held.has('a') ? sqlError(code) : null));
      held.add('a').add('b');
      for (const name of ['a', 'a', 'b']) send(name);
      await time.pass(1);
      held.clear();
      await time.pass(200);
      assert.deepEqual(outcomes.slice(4), [4, code, 6]);
    });

  test('a refusal in one half of a batch is heard, also while the other half is still under way', async () => {
    const { time, held, send, outcomes, failing } = scene();
    held.add('a');
    for (let i = 0; i < 500; i++) send('a');
    await time.pass(0);
    const [first, full, bad, last] = [send('b'), send('a'), send('c'), send('d')];
    failing(async (items) => {
      await new Promise((resolve) => setImmediate(resolve));
      return items.some((i) => i.n === bad) ? sqlError('22021') : null;
    });
    for (let i = 0; i < 10; i++) await time.pass(0);
    assert.deepEqual(
      [first, full, bad, last].map((n) => outcomes[n]),
      [first, 'service_unavailable', '22021', last],
    );
  });
});
