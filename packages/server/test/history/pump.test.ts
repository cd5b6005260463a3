import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pump } from '../../src/features/storage/pump.ts';

/** Batches from one store into another: what happens at the same time, and what never does. */

const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function world(count: number, stop: { refuse?: number; failWrite?: number; failConfirm?: number } = {}) {
  const log: string[] = [];
  const under = new Set<string>();
  let most = 0;
  const step = async (what: string): Promise<void> => {
    under.add(what);
    most = Math.max(most, under.size);
    for (let i = 0; i < 3; i++) await rest();
    under.delete(what);
    log.push(what);
  };
  const run = pump<number>({
    async read(after) {
      const next = (after ?? 0) + 1;
      if (next > count) return null;
      await step(`read ${next}`);
      return next;
    },
    async write(batch) {
      await step(`write ${batch}`);
      if (batch === stop.failWrite) throw new Error('write');
    },
    async confirm(batch) {
      await step(`confirm ${batch}`);
      if (batch === stop.failConfirm) throw new Error('confirm');
      return batch !== stop.refuse;
    },
  });
  return { run, log, under, most: () => most };
}

const only = (log: string[], what: string) => log.filter((line) => line.startsWith(what));

test('the next is read and the one before confirmed while one is written; each in its order', async () => {
  const { run, log, most, under } = world(5);
  await run;
  for (const what of ['read', 'write', 'confirm'])
    assert.deepEqual(
      only(log, what),
      [1, 2, 3, 4, 5].map((n) => `${what} ${n}`),
    );
  assert.equal(most(), 3);
  assert.equal(under.size, 0);
  assert.ok(log.indexOf('read 2') < log.indexOf('confirm 1'));
});

test('what was written before a failure is confirmed, and nothing is under way afterwards', async () => {
  const { run, log, under } = world(5, { failWrite: 3 });
  await assert.rejects(run, /write/);
  assert.deepEqual(only(log, 'confirm'), ['confirm 1', 'confirm 2']);
  assert.equal(under.size, 0);
});

test('whoever lost it writes no further than what was under way', async () => {
  for (const stop of [{ refuse: 2 }, { failConfirm: 2 }]) {
    const { run, log, under } = world(9, stop);
    await run.catch(() => undefined);
    assert.deepEqual(only(log, 'write').at(-1), 'write 3');
    assert.deepEqual(only(log, 'confirm').at(-1), 'confirm 2');
    assert.equal(under.size, 0);
  }
});
