import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as soon } from 'node:timers/promises';
import fc from 'fast-check';
import { seed } from '../../../../scripts/seed.ts';
import { Turns } from '../../src/platform/turns.ts';
import type { TurnsOptions } from '../../src/platform/turns.ts';

class Refused extends Error {}

const options: TurnsOptions = {
  slots: 2,
  lane: { slots: 2, cost: 100, waiting: 1_000 },
  waiting: 10_000,
  waitMs: 3_600_000,
  refuse: () => new Refused(),
};

/** Work that ends when the test says so; `begun` is the order in which it began. */
function scene(changes: Partial<TurnsOptions> = {}) {
  const turns = new Turns({ ...options, ...changes });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const results: Promise<unknown>[] = [];
  const ask = (lane: string, cost = 1, times = 1) => {
    for (let i = 0; i < times; i++)
      results.push(
        turns
          .run(lane, cost, () => {
            begun.push(lane);
            return new Promise<void>((resolve) => ends.push(resolve));
          })
          .catch((error: unknown) => error),
      );
  };
  const end = async (count = 1) => {
    for (let i = 0; i < count; i++) {
      ends.shift()!();
      await soon();
    }
  };
  const drained = async () => {
    while (ends.length > 0) await end();
    await Promise.all(results);
    assert.equal(turns.waiting, 0);
  };
  return { turns, begun, ask, end, results, drained, running: () => ends.length };
}
const count = (begun: string[], lane: string) => begun.filter((b) => b === lane).length;

test('at most as many run at once as there are slots; results and errors come through', async () => {
  const { turns, begun, ask, end } = scene();
  ask('a', 1, 5);
  await soon();
  assert.equal(begun.length, 2);
  await end(5);
  assert.equal(begun.length, 5);
  assert.equal(await turns.run('a', 1, () => Promise.resolve('result')), 'result');
  await assert.rejects(
    turns.run('a', 1, () => Promise.reject(new Error('own'))),
    /own/,
  );
  assert.equal(await turns.run('a', 1, () => Promise.resolve('still')), 'still');
});

test('a lane leaves room for others, whatever it asks for', async () => {
  const { begun, ask, drained } = scene({ slots: 4, lane: { ...options.lane, slots: 3 } });
  ask('greedy', 1, 100);
  ask('other');
  await soon();
  assert.deepEqual(begun, ['greedy', 'greedy', 'greedy', 'other']);
  await drained();
});

test('a long queue delays only its own lane', async () => {
  const { begun, ask, end, drained } = scene();
  ask('greedy', 1, 500);
  await end();
  ask('a', 1, 5);
  ask('b', 1, 5);
  await end(40);
  assert.equal(count(begun, 'a'), 5);
  assert.equal(count(begun, 'b'), 5);
  await drained();
});

test('turns are weighed: dear work gets as much in all as cheap work, not as often', async () => {
  const { begun, ask, end, drained } = scene({ slots: 1 });
  ask('cheap', 1, 1_000);
  ask('dear', 20, 1_000);
  await end(420);
  const [cheap, dear] = [count(begun, 'cheap'), count(begun, 'dear')];
  assert.ok(Math.abs(cheap - 20 * dear) <= 40, `${cheap} cheap ones, ${dear} dear ones`);
  await drained();
});

test('of one lane only so much runs at once as its costs allow, and always one', async () => {
  const { begun, ask, end } = scene({ slots: 10, lane: { ...options.lane, slots: 8, cost: 8 } });
  ask('dear', 20, 3);
  ask('middle', 3, 5);
  ask('cheap', 1, 20);
  await soon();
  assert.deepEqual(
    [count(begun, 'dear'), count(begun, 'middle'), count(begun, 'cheap')],
    [1, 2, 7],
    'the cheap ones have the slots that are left',
  );
  await end(28);
  assert.equal(begun.length, 28);
});

test('under pressure a lane has fewer at once, down to one, and others still find room', async () => {
  let pressure = 0;
  const lane = { ...options.lane, slots: 4, cost: 8, pressure: () => pressure };
  const { begun, ask, end, drained, running } = scene({ slots: 6, lane });
  ask('greedy', 2, 100);
  await soon();
  assert.equal(running(), 4);
  pressure = 0.5;
  await end(3);
  assert.equal(running(), 2);
  pressure = 1;
  await end(2);
  assert.equal(running(), 1, 'one runs in any case');
  ask('other');
  await soon();
  assert.equal(count(begun, 'other'), 1);
  pressure = 0;
  await end();
  assert.equal(running(), 4 + 1, 'with the pressure gone it has its room again');
  await drained();
});

test('what a lane may have waiting is bounded, and so is how long', async () => {
  const { turns, ask, results, end, begun } = scene({ lane: { ...options.lane, waiting: 3 } });
  ask('a', 1, 6);
  await soon();
  assert.ok((await results[5]) instanceof Refused);
  assert.equal(turns.waiting, 3);
  ask('b', 1, 1);
  assert.equal(turns.waiting, 4, 'another lane is not concerned');
  await end(6);
  assert.equal(begun.length, 6);

  const short = scene({ slots: 1, waitMs: 10 });
  short.ask('a', 1, 2);
  assert.ok((await short.results[1]) instanceof Refused);
  assert.equal(short.turns.waiting, 0);
  await short.end();
  short.ask('a');
  await soon();
  assert.equal(short.begun.length, 2, 'the slot is free again');
  await short.drained();
});

test('what waits in all is bounded, but a lane in which nobody waits is let in', async () => {
  const { ask, results, turns, drained } = scene({ waiting: 5 });
  ask('a', 1, 8);
  await soon();
  assert.ok((await results[7]) instanceof Refused);
  ask('b', 1, 2);
  assert.ok((await results[9]) instanceof Refused);
  assert.equal(turns.waiting, 6);
  await drained();
});

test('whatever comes, nothing is lost, bounds hold, and everything ends', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 25 })), {
        maxLength: 60,
      }),
      fc.integer({ min: 1, max: 6 }),
      async (asked, slots) => {
        const { begun, ask, end, running, results, turns } = scene({
          slots,
          lane: { slots: Math.max(1, slots - 1), cost: 8, waiting: 1_000 },
        });
        for (const [lane, cost] of asked) ask(lane, cost);
        await soon();
        while (running() > 0) {
          assert.ok(running() <= slots);
          await end();
        }
        await Promise.all(results);
        for (const lane of ['a', 'b', 'c', 'd'])
          assert.equal(count(begun, lane), asked.filter(([l]) => l === lane).length);
        assert.equal(turns.waiting, 0);
      },
    ),
    { numRuns: 100, seed: seed('turns') },
  );
});
