import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEvent } from '../../src/log/events.ts';
import { deferred, event, seqs, setup } from './hub-tools.ts';

/** Events that are late on the bus: read from the store before later ones go out, within bounds. */

test('an event that is late by 250 ms is read from the store, and dropped when it comes', async () => {
  const asked: number[] = [];
  const { hub, join, time } = setup({
    missed: (after) => {
      asked.push(after);
      return Promise.resolve([2, 3].map((seq) => event(seq)));
    },
  });
  const session = await join();
  for (const seq of [1, 5, 4]) hub.publish(event(seq));
  await time.pass(249);
  assert.deepEqual([seqs(session), asked], [[1], []]);
  await time.pass(1);
  assert.deepEqual([seqs(session), asked], [[1, 2, 3, 4, 5], [1]]);
  for (const seq of [2, 6]) hub.publish(event(seq));
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5, 6]);
});

test('sdk#gap: where the store does not tell what is late, the later events go out, and the late one is dropped', async () => {
  const never = new Promise<never>(() => undefined);
  for (const missed of [() => Promise.resolve(null), () => Promise.reject(new Error('away')), () => never]) {
    const { hub, join, time } = setup({ missed });
    const session = await join();
    for (const seq of [1, 4, 3]) hub.publish(event(seq));
    await time.pass(250);
    await time.pass(1_000);
    assert.deepEqual(seqs(session), [1, 3, 4]);
    for (const seq of [2, 5]) hub.publish(event(seq));
    assert.deepEqual(seqs(session), [1, 3, 4, 5]);
  }
});

test('a late event that comes while it is read goes out once', async () => {
  const read = deferred<LogEvent[]>();
  const { hub, join, time } = setup({ missed: () => read.promise });
  const session = await join();
  for (const seq of [1, 3]) hub.publish(event(seq));
  await time.pass(250);
  for (const seq of [2, 5]) hub.publish(event(seq));
  assert.deepEqual(seqs(session), [1, 2, 3]);
  read.resolve([2, 3, 4, 5].map((seq) => event(seq)));
  await time.pass(0);
  assert.deepEqual(seqs(session), [1, 2, 3, 4, 5]);
});

test('at most 16 routes of an environment and 32 in all read a late event at a time; clients of the others read it', async () => {
  const places = Array.from({ length: 40 }, (_, i) => `conv_${i}`);
  let asked = 0;
  const { hub, join, time } = setup({
    memberships: () => Promise.resolve(places.map((cid) => ({ cid, lastSeq: 0 }))),
    missed: () => {
      asked++;
      return new Promise(() => undefined);
    },
  });
  const session = await join();
  const late = (env: number, from: number, to: number): void => {
    for (const cid of places.slice(from, to)) hub.publish({ ...event(2), cid, env });
  };
  late(1, 0, 20);
  late(2, 20, 25);
  await time.pass(250);
  assert.deepEqual([asked, seqs(session).length], [16 + 5, 4]);
  late(3, 25, 40);
  await time.pass(250);
  assert.deepEqual([asked, seqs(session).length], [32, 4 + 4]);
  await time.pass(1_000);
  assert.deepEqual([asked, seqs(session).length], [32, 40]);
});

test('each gap has its own 250 ms', async () => {
  const { hub, join, time } = setup();
  const session = await join();
  hub.publish(event(2));
  time.advance(200);
  hub.publish(event(1));
  hub.publish(event(4));
  time.advance(200);
  assert.deepEqual(seqs(session), [1, 2], 'the timer of the gap that was filled does not count');
  hub.publish(event(3));
  assert.deepEqual(seqs(session), [1, 2, 3, 4]);
});

test('what is held is bounded: past 200 it goes out at once', async () => {
  const { hub, join } = setup();
  const session = await join();
  for (let seq = 2; seq <= 201; seq++) hub.publish(event(seq));
  assert.deepEqual(seqs(session), []);
  hub.publish(event(202));
  assert.equal(seqs(session).length, 201);
});
