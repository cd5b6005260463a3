import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Circuit, circuitRules } from '../../src/platform/flow/circuit.ts';
import type { CallEnd } from '../../src/platform/flow/circuit.ts';
import { Lines } from '../../src/platform/flow/lines.ts';
import { Places } from '../../src/platform/flow/places.ts';
import { readBeforeSend } from '../../src/features/hooks/before-send.ts';
import { HookFailed } from '../../src/features/hooks/call.ts';

/** hooks.md: the parts that have no network, in a time that stands still. */

describe('hooks#circuit', () => {
  let now = 0;
  const fresh = () => {
    now = 1_000_000;
    return new Circuit(() => now);
  };
  const make = (circuit: Circuit, end: CallEnd) => circuit.ended(circuit.begin()!, end);

  test('hooks#circuit: ten failures in a row open it, a success in between does not', () => {
    const circuit = fresh();
    for (let i = 0; i < 9; i++) assert.equal(make(circuit, 'failed'), null);
    make(circuit, 'succeeded');
    for (let i = 0; i < 8; i++) assert.equal(make(circuit, 'failed'), null);
    assert.equal(make(circuit, 'succeeded'), null, 'nine of them, and 17 of 19 failed');
    now += circuitRules.windowMs;
    for (let i = 0; i < 9; i++) assert.equal(make(circuit, 'failed'), null);
    assert.equal(make(circuit, 'failed'), 'opened');
    assert.equal(circuit.begin(), null);
    assert.equal(circuit.waitMs, circuitRules.openMs);
  });

  test('hooks#circuit: half of at least twenty calls in ten seconds open it; older ones do not count', () => {
    const circuit = fresh();
    for (let i = 0; i < 9; i++) {
      make(circuit, 'succeeded');
      assert.equal(make(circuit, 'failed'), null);
    }
    now += circuitRules.windowMs;
    for (let i = 0; i < 9; i++) {
      make(circuit, 'succeeded');
      assert.equal(make(circuit, 'failed'), null, 'the first eighteen are too old');
    }
    make(circuit, 'succeeded');
    assert.equal(make(circuit, 'failed'), 'opened');
  });

  test('hooks#circuit: after five seconds one call tries; what began before counts no more', () => {
    const circuit = fresh();
    const early = circuit.begin()!;
    assert.ok(circuit.holds(early));
    for (let i = 0; i < 10; i++) make(circuit, 'failed');
    assert.ok(!circuit.holds(early), 'it must not be made any more');
    assert.equal(circuit.ended(early, 'succeeded'), null, 'it began before the circuit opened');
    now += circuitRules.openMs - 1;
    assert.equal(circuit.begin(), null);
    now += 1;
    const trial = circuit.begin()!;
    assert.equal(circuit.begin(), null, 'one at a time');
    assert.equal(circuit.ended(trial, 'failed'), 'opened');
    assert.equal(circuit.begin(), null);
    now += circuitRules.openMs;
    assert.equal(circuit.ended(circuit.begin()!, 'unmade'), null);
    assert.equal(circuit.ended(circuit.begin()!, 'succeeded'), 'closed', 'the next one tries at once');
    for (let i = 0; i < 9; i++) assert.equal(make(circuit, 'failed'), null, 'it begins anew');
  });
});

describe('hooks#bounds', () => {
  const setUp = (options = { inAll: 4, ofOne: 3, waiting: 2 }) => {
    const places = new Places(options);
    const began: string[] = [];
    const enter = (lane: number, name: string) => places.enter(lane, () => began.push(name));
    return { places, began, enter };
  };

  test('hooks#bounds: a lane has its places, its queue, and then nothing', () => {
    const { places, began, enter } = setUp();
    const leave = ['a', 'b', 'c', 'd', 'e'].map((name) => enter(1, name));
    assert.deepEqual(began, ['a', 'b', 'c']);
    assert.equal(enter(1, 'f'), null, 'two wait already');
    assert.ok(enter(2, 'other'), 'another lane has a place');
    assert.deepEqual(began, ['a', 'b', 'c', 'other']);
    leave[3]!();
    leave[0]!();
    leave[0]!();
    assert.deepEqual(began, ['a', 'b', 'c', 'other'], 'with two lanes each has two places');
    leave[1]!();
    assert.deepEqual(began.slice(4), ['e'], 'what left the queue never begins');
    assert.equal(places.running, 3);
  });

  test('hooks#bounds: with more lanes than places for all of them each has an even share, the least first', () => {
    const { began, enter } = setUp({ inAll: 4, ofOne: 4, waiting: 10 });
    const first = ['a1', 'a2', 'a3', 'a4'].map((name) => enter(1, name)!);
    enter(2, 'b1');
    enter(1, 'a5');
    enter(2, 'b2');
    assert.deepEqual(began, ['a1', 'a2', 'a3', 'a4']);
    first[0]!();
    first[1]!();
    assert.deepEqual(began.slice(4), ['b1', 'b2'], 'the lane with fewer calls goes first');
    enter(2, 'b3');
    first[2]!();
    assert.deepEqual(began.slice(6), ['a5'], 'one runs of the first, two of the second: that is its share');
  });
});

describe('hooks#order', () => {
  test('hooks#order: who enters a line later leaves it later; other lines pass', async () => {
    const lines = new Lines();
    const out: string[] = [];
    const walk = async (line: string, name: string, work: Promise<unknown>): Promise<void> => {
      const { turn, leave } = lines.enter(line);
      await work;
      await turn;
      out.push(name);
      leave();
    };
    const slow = Promise.withResolvers<void>();
    const all = [
      walk('x', '1', slow.promise),
      walk('x', '2', Promise.resolve()),
      walk('y', '3', Promise.resolve()),
    ];
    await all[2];
    assert.deepEqual(out, ['3']);
    slow.resolve();
    await Promise.all(all);
    assert.deepEqual(out, ['3', '1', '2']);
    await new Promise(setImmediate);
    assert.equal(lines.size, 0, 'an empty line is forgotten');
  });
});

test('hooks#answer: only what is described counts as an answer', () => {
  assert.deepEqual(readBeforeSend(undefined), { verdict: 'allow' });
  assert.deepEqual(readBeforeSend({ action: 'allow' }), { verdict: 'allow' });
  assert.equal(
    (readBeforeSend({ action: 'reject' }) as { reason: string }).reason,
    'The message was refused.',
  );
  assert.deepEqual(readBeforeSend({ action: 'reject', reason: 'no' }), { verdict: 'reject', reason: 'no' });
  assert.deepEqual(readBeforeSend({ action: 'rewrite', text: 'x' }), {
    verdict: 'rewrite',
    rewrite: { text: 'x' },
  });
  const bad: unknown[] = [
    null,
    'allow',
    [],
    true,
    {},
    { action: 'toString' },
    { action: ['allow'] },
    { action: 'ALLOW' },
    { action: 'allow', text: 'x' },
    { action: 'reject', reason: 7 },
    { action: 'reject', reason: 'x'.repeat(501) },
    { action: 'reject', reason: '' },
    { action: 'rewrite' },
    { action: 'rewrite', text: '' },
    { action: 'rewrite', text: 'x'.repeat(5_001) },
    { action: 'rewrite', text: 'a\0b' },
    { action: 'rewrite', text: '\ud800' },
    { action: 'rewrite', text: 5 },
    { action: 'rewrite', txt: 'x' },
    { action: 'rewrite', metadata: [] },
    { action: 'rewrite', metadata: { long: 'x'.repeat(5_000) } },
    { action: 'rewrite', mentions: [{ type: 'user', userId: 'a b' }] },
    { action: 'rewrite', mentions: [{ type: 'all' }] },
    { action: 'rewrite', replyTo: 'msg_x' },
    { action: 'rewrite', text: 'x', senderId: 'admin' },
  ];
  for (const answer of bad) assert.throws(() => readBeforeSend(answer), HookFailed, JSON.stringify(answer));
});
