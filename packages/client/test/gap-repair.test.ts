import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ParleyError } from '../src/errors.ts';
import { GapRepair } from '../src/sync/gap-repair.ts';
import { FakeClock, seeded } from './fake-clock.ts';
import { seed } from '../../../scripts/seed.ts';

interface Ev {
  seq: number;
}

/** A server's log, and a follower of it whose requests take time and may fail. */
function follower(seed: number) {
  const clock = new FakeClock();
  const random = seeded(seed);
  const state = {
    log: [] as Ev[],
    /** Up to where the follower's copy goes; each step must be the next one. */
    shown: [] as number[],
    fail: null as (() => ParleyError | null) | null,
    pageSize: 3,
    reloads: 0,
    fetches: 0,
    gone: 0,
  };
  const request = async <T>(answer: () => T): Promise<T> => {
    const late = random() < 0.5;
    const value = late ? null : answer();
    await new Promise<void>((resolve) => clock.setTimeout(resolve, Math.floor(random() * 50)));
    const error = state.fail?.();
    if (error) throw error;
    return late ? answer() : (value as T);
  };
  const gap = new GapRepair<Ev>({
    clock,
    random,
    fetch: (after) => {
      state.fetches++;
      return request(() => {
        const rest = state.log.filter((e) => e.seq > after);
        return { data: rest.slice(0, state.pageSize), hasMore: rest.length > state.pageSize };
      });
    },
    reload: async () => {
      state.reloads++;
      const position = state.log.length;
      const page = await request(() => state.log.map((e) => e.seq));
      return (wanted) => {
        if (wanted) state.shown = page;
        return position;
      };
    },
    apply: (event) => {
      // A page may be ahead of its position: then the event is known already.
      if (state.shown.includes(event.seq)) return;
      assert.equal(event.seq, (state.shown.at(-1) ?? 0) + 1, 'in order, without a hole');
      state.shown.push(event.seq);
    },
    onProgress: () => {},
    onGone: () => state.gone++,
  });
  return { clock, gap, state };
}

test('sdk#gap: any interleaving of events, duplicates, holes, pauses and failures converges', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ op: fc.constant('append' as const), deliver: fc.boolean() }) },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('replay' as const),
        at: fc.double({ min: 0, max: 0.999, noNaN: true }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 80 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constantFrom('pause' as const, 'resume' as const, 'reload' as const, 'reach' as const),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('fail' as const),
        code: fc.constantFrom('network', 'resync_required', 'internal'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('heal' as const) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 60, size: 'max' }), async (start, steps) => {
      const { clock, gap, state } = follower(start);
      gap.resume();
      for (const s of steps) {
        if (s.op === 'append') {
          const event = { seq: state.log.length + 1 };
          state.log.push(event);
          if (s.deliver) gap.push(event);
        } else if (s.op === 'replay') {
          const event = state.log[Math.floor(s.at * state.log.length)];
          if (event) gap.push(event);
        } else if (s.op === 'wait') await clock.advance(s.ms);
        else if (s.op === 'fail') state.fail = () => new ParleyError(s.code);
        else if (s.op === 'heal') state.fail = null;
        else if (s.op === 'reach') gap.reach(state.log.length);
        else gap[s.op]();
      }
      state.fail = null;
      gap.resume();
      gap.reach(state.log.length);
      await clock.advance(120_000);
      assert.deepEqual(
        state.shown,
        state.log.map((e) => e.seq),
      );
      assert.equal(gap.lastSeq, state.log.length);
      assert.equal(clock.pending, 0);
    }),
    { seed: seed('gap repair'), numRuns: Number(process.env.RUNS ?? 150) },
  );
});

async function following(seed = 1) {
  const world = follower(seed);
  world.state.log.push({ seq: 1 });
  world.gap.resume();
  await world.clock.advance(1_000);
  assert.deepEqual(world.state.shown, [1]);
  world.state.log.push({ seq: 2 }, { seq: 3 });
  return world;
}

test('sdk#gap: three failed fetches behave as resync_required', async () => {
  const { clock, gap, state } = await following();
  let failures = 0;
  state.fail = () => (failures++ < 3 ? new ParleyError('internal') : null);
  gap.push({ seq: 3 });
  await clock.advance(60_000);
  assert.deepEqual([state.fetches, state.reloads], [3, 2]);
  assert.deepEqual(state.shown, [1, 2, 3]);
});

test('sdk#gap: two failures are retried; 410 reloads at once', async () => {
  const first = await following();
  let failures = 0;
  first.state.fail = () => (failures++ < 2 ? new ParleyError('internal') : null);
  first.gap.push({ seq: 3 });
  await first.clock.advance(60_000);
  assert.deepEqual([first.state.fetches, first.state.reloads], [3, 1]);

  const second = await following();
  failures = 0;
  second.state.fail = () => (failures++ < 1 ? new ParleyError('resync_required') : null);
  second.gap.push({ seq: 3 });
  await second.clock.advance(60_000);
  assert.deepEqual([second.state.fetches, second.state.reloads], [1, 2]);
  assert.deepEqual(second.state.shown, [1, 2, 3]);
});

test('a stream of more than 1,000 held events is reloaded instead of growing', async () => {
  const { clock, gap, state } = await following();
  state.fail = () => new ParleyError('network');
  for (let seq = 4; seq <= 1_100; seq++) {
    state.log.push({ seq });
    gap.push({ seq });
  }
  state.fail = null;
  await clock.advance(60_000);
  assert.equal(state.reloads, 2);
  assert.equal(state.shown.length, 1_100);
});

test('a conversation that may not be read any more stops the stream', async () => {
  const { clock, gap, state } = await following();
  state.fail = () => new ParleyError('not_member');
  gap.push({ seq: 3 });
  await clock.advance(60_000);
  assert.deepEqual([state.gone, state.fetches, clock.pending], [1, 1, 0]);
});

test('a stream that went back is loaded again from where it is, and goes on from there', async () => {
  const { clock, gap, state } = await following();
  state.log.length = 1;
  gap.restart();
  await clock.advance(60_000);
  assert.deepEqual([state.shown, gap.lastSeq, clock.pending], [[1], 1, 0]);
  state.log.push({ seq: 2 });
  gap.push({ seq: 2 });
  assert.deepEqual(state.shown, [1, 2]);
});
