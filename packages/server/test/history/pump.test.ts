import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Placed } from '../../src/features/storage/records.ts';
import { createWriter, pump } from '../../src/features/storage/write.ts';
import type { Stages } from '../../src/features/storage/write.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { HistoryError } from '../../src/platform/history/port.ts';
import type { History } from '../../src/platform/history/port.ts';
import { createLogger } from '../../src/platform/logging.ts';

/** Batches from one store into another: what happens at the same time, and what never does. */

const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function world(
  count: number,
  stop: { refuse?: number; failWrite?: number; failConfirm?: number } = {},
  writesAtOnce = 1,
) {
  const log: string[] = [];
  const under = new Set<string>();
  let mostWrites = 0;
  const step = async (what: string, turns = 3): Promise<void> => {
    under.add(what);
    mostWrites = Math.max(mostWrites, [...under].filter((one) => one.startsWith('write')).length);
    for (let i = 0; i < turns; i++) await rest();
    under.delete(what);
    log.push(what);
  };
  const stages: Stages<number, string> = {
    async read(after) {
      const next = (after ?? 0) + 1;
      if (next > count) return null;
      await step(`read ${next}`);
      return next;
    },
    async write(batch) {
      await step(`write ${batch}`, 10);
      if (batch === stop.failWrite) throw new Error('write');
      return `written ${batch}`;
    },
    async confirm(batch, written) {
      assert.equal(written, `written ${batch}`);
      await step(`confirm ${batch}`);
      if (batch === stop.failConfirm) throw new Error('confirm');
      return batch !== stop.refuse;
    },
  };
  return { run: pump(stages, writesAtOnce), log, under, mostWrites: () => mostWrites };
}

const only = (log: string[], what: string) => log.filter((line) => line.startsWith(what));

test('while one is written the next is read and the one before confirmed; each in its order', async () => {
  const { run, log, mostWrites, under } = world(5);
  await run;
  assert.equal(mostWrites(), 1);
  for (const what of ['read', 'write', 'confirm'])
    assert.deepEqual(
      only(log, what),
      [1, 2, 3, 4, 5].map((n) => `${what} ${n}`),
    );
  assert.equal(under.size, 0);
  assert.ok(log.indexOf('read 2') < log.indexOf('write 1'));
  assert.ok(log.indexOf('confirm 1') < log.indexOf('write 2'));
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

test('where the database takes two writes at once, two are under way; they are confirmed in their order', async () => {
  const { run, log, mostWrites, under } = world(5, {}, 2);
  await run;
  assert.equal(mostWrites(), 2);
  for (const what of ['write', 'confirm'])
    assert.deepEqual(
      only(log, what),
      [1, 2, 3, 4, 5].map((n) => `${what} ${n}`),
    );
  assert.equal(under.size, 0);
});

test('of two writes at once, one after a failed one is not confirmed, and ends before the pump does', async () => {
  const { run, log, under } = world(5, { failWrite: 3 }, 2);
  await assert.rejects(run, /write/);
  assert.deepEqual(only(log, 'confirm'), ['confirm 1', 'confirm 2']);
  assert.deepEqual(only(log, 'write').at(-1), 'write 4');
  assert.equal(under.size, 0);
});

const placed = (count: number, text: string): Placed[] =>
  Array.from({ length: count }, (_, i) => ({
    record: message({ id: `msg_${i}`, conversationId: 'conv_x', seq: i + 1, text }),
    conv: 1,
    message: i + 1,
  }));

function writing(answer: (size: number) => void = () => undefined) {
  const sizes: number[] = [];
  const history = {
    write(records: readonly unknown[]) {
      sizes.push(records.length);
      answer(records.length);
      return Promise.resolve();
    },
  } as unknown as History;
  const writer = createWriter({ logger: createLogger('silent'), counted: () => undefined });
  const written = async (count: number, text = 'short') => {
    sizes.length = 0;
    await writer.write(1, history, placed(count, text)).catch(() => undefined);
    return [...sizes];
  };
  return { writer, written };
}

test('a write has at most so many records, and at most a megabyte of them', async () => {
  const { written } = writing();
  assert.deepEqual(await written(1_200), [500, 500, 200]);
  assert.deepEqual(await written(5, 'x'.repeat(400_000)), [2, 2, 1]);
  assert.deepEqual(await written(2, 'x'.repeat(3_000_000)), [1, 1], 'one that is larger goes alone');
});

test('a database that is too slow gets smaller pieces, and larger ones again when it keeps up', async () => {
  let most = 100;
  const { writer, written } = writing((size) => {
    if (size > most) throw new HistoryError('timeout', undefined);
  });
  for (let i = 0; i < 3; i++) await written(500);
  assert.equal(writer.sizeOf(1), 62);
  most = 0;
  for (let i = 0; i < 5; i++) await written(500);
  assert.equal(writer.sizeOf(1), 10);
  most = 500;
  for (let i = 0; i < 6; i++) await written(10);
  assert.equal(writer.sizeOf(1), 500);
});
