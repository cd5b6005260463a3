import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '@parley/protocol';
import { createCold } from '../../src/features/storage/cold.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { HistoryError, QueueFull } from '../../src/platform/history/port.ts';
import type { History, HistoryPage } from '../../src/platform/history/port.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { StandingTime } from '../support/time.ts';

/** storage#circuit, reading cold history from a database that hangs: in a time that stands still until it is moved. */

const env = { no: 1, id: 'env_x' };
const found = message({ id: 'msg_1', conversationId: 'conv_x', seq: 1 });

/** A database that answers when the test says so. */
function world() {
  const time = new StandingTime();
  const asked: { answer(page: HistoryPage): void; fail(error: Error): void }[] = [];
  const dropped: string[] = [];
  const opened: string[] = [];
  const openedSlots: unknown[] = [];
  const history = {
    read: () => new Promise<HistoryPage>((answer, fail) => asked.push({ answer, fail })),
  } as unknown as History;
  let slots = [{ active: 'a', slot: 'a', replicaUrl: null, changedAt: '1', suspect: false }];
  const cold = createCold({
    db: { query: () => Promise.resolve(slots) } as unknown as Queryable,
    connections: {
      open: (_env, slot, purpose = 'write') => {
        opened.push(purpose);
        openedSlots.push(slot);
        return Promise.resolve(history);
      },
      drop: (_env, slot) => void dropped.push(slot),
    },
    limiter: memoryRateLimiter(time),
    clock: time,
    timers: time.timers,
    logger: createLogger('silent'),
  });
  const results: string[] = [];
  const read = (): void => {
    const at = results.push('waits') - 1;
    cold.at(env, 'conv_x', [1]).then(
      (page) => (results[at] = `found ${page?.size}`),
      (error: unknown) => (results[at] = error instanceof ApiError ? error.code : String(error)),
    );
  };
  return {
    time,
    asked,
    dropped,
    opened,
    openedSlots,
    results,
    read,
    change: (to: Partial<(typeof slots)[0]>) => (slots = [{ ...slots[0]!, ...to }]),
  };
}

const answer: HistoryPage = { data: [found], hasMore: false };

test('a database that stops answering costs one waiting request: all others are told at once', async () => {
  const { time, asked, dropped, results, read } = world();
  for (let i = 0; i < 20; i++) read();
  await time.pass(1_000);
  assert.deepEqual(new Set(results), new Set(['waits']));
  await time.pass(600);
  assert.deepEqual(
    [results.filter((r) => r === 'waits').length, results.filter((r) => r === 'history_unavailable').length],
    [1, 19],
    'one goes on waiting for it',
  );
  const before = asked.length;
  read();
  await time.pass(1);
  assert.deepEqual([results.at(-1), asked.length], ['history_unavailable', before], 'and nobody else asks');
  await time.pass(3_500);
  assert.deepEqual(
    new Set(results),
    new Set(['history_unavailable']),
    'storage#circuit: reads time out in 5 s',
  );
  assert.deepEqual(dropped.sort(), ['a', 'b'], 'what hangs is not used again');

  // After a pause one tries; it is answered, and all is well.
  read();
  await time.pass(1_100);
  for (let i = 0; i < 5; i++) read();
  await time.pass(1);
  assert.equal(asked.length, before + 1, 'one tries');
  asked.at(-1)!.answer(answer);
  await time.pass(1);
  read();
  await time.pass(1);
  asked.at(-1)!.answer(answer);
  await time.pass(1);
  assert.equal(results.at(-1), 'found 1');
});

test('storage#circuit: more than 50 cold queries a second are 429 rate_limited', async () => {
  const { time, asked, results, read } = world();
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) read();
    await time.pass(1);
    for (const one of asked.splice(0)) one.answer(answer);
    await time.pass(1);
  };
  await ask(50);
  await ask(1);
  assert.deepEqual([new Set(results.slice(0, 50)), results.at(-1)], [new Set(['found 1']), 'rate_limited']);
  await time.pass(1_000);
  await ask(1);
  assert.equal(results.at(-1), 'found 1', 'a second later there is room again');
});

test('a database that is slow and answers is asked on', async () => {
  const { time, asked, results, read } = world();
  for (let i = 0; i < 10; i++) {
    read();
    await time.pass(400);
    for (const one of asked.splice(0, Math.max(0, asked.length - 2))) one.answer(answer);
  }
  for (const one of asked.splice(0)) one.answer(answer);
  await time.pass(1);
  assert.deepEqual(new Set(results), new Set(['found 1']));
});

test('a database that refuses connections is left alone for longer and longer', async () => {
  const { time, asked, results, read } = world();
  const pauses: number[] = [];
  for (let i = 0; i < 7; i++) {
    read();
    await time.pass(1);
    asked.pop()!.fail(new HistoryError('unreachable', 'ECONNREFUSED'));
    await time.pass(1);
    let pause = 0;
    for (; asked.length === 0; pause += 500) {
      read();
      await time.pass(500);
    }
    pauses.push(pause);
    asked.pop()!.fail(new HistoryError('unreachable', 'ECONNREFUSED'));
    await time.pass(1);
    await time.pass(60_000);
  }
  assert.ok(results.every((r) => r === 'history_unavailable'));
  assert.ok(pauses[0]! <= 2_000 && pauses.at(-1)! > 25_000 && pauses.at(-1)! <= 31_000, pauses.join());
});

test('a replica is asked first; what it does not have, or while it is away, the database itself is asked', async () => {
  const { time, asked, results, read, change, opened } = world();
  change({ replicaUrl: 'somewhere' as never });
  for (const first of [
    () => asked.pop()!.answer({ data: [], hasMore: false }),
    () => asked.pop()!.fail(new HistoryError('unreachable', 'ECONNREFUSED')),
  ]) {
    opened.length = 0;
    read();
    await time.pass(1);
    assert.deepEqual(opened, ['read']);
    first();
    await time.pass(1);
    assert.deepEqual(opened, ['read', 'write']);
    asked.pop()!.answer(answer);
    await time.pass(1);
    assert.equal(results.at(-1), 'found 1');
  }
});

test('docs/storage.md, Safety: every read asks the slots as they are now', async () => {
  const { time, asked, results, read, change, openedSlots } = world();
  for (const suspect of [false, true]) {
    change({ suspect });
    read();
    await time.pass(1);
    asked.pop()!.answer(answer);
    await time.pass(1);
    assert.equal(results.at(-1), 'found 1');
  }
  assert.deepEqual(
    openedSlots.map((slot) => (slot as { suspect: boolean }).suspect),
    [false, true],
  );
});

test('docs/storage.md, Safety: a full queue of our own refuses one read, and is no fault of the database', async () => {
  const { time, asked, dropped, results, read } = world();
  read();
  await time.pass(1);
  asked.pop()!.fail(new QueueFull());
  await time.pass(1);
  read();
  await time.pass(1);
  asked.pop()!.answer(answer);
  await time.pass(1);
  assert.deepEqual([results, dropped], [['history_unavailable', 'found 1'], []]);
});
