import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { seed } from '../../../../scripts/seed.ts';
import { ended, rungOut, settled, withMove, withNewcomer } from '../../src/features/calls/call-state.ts';
import type { CallState } from '../../src/features/calls/call-state.ts';
import { invited, isIn, moved } from '../../src/features/calls/participant-state.ts';
import type { ParticipantMove } from '../../src/features/calls/participant-state.ts';

/** The state machines of calls, alone: the clock is a number that the test counts up. */

const time = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();
const who = (usr: number) => ({ usr, userId: `u${usr}` });

function callOf(callees: ('ringing' | 'busy')[], direct = callees.length === 1): CallState {
  return settled(
    {
      status: 'ringing',
      kind: 'audio',
      direct,
      createdBy: 1,
      answeredAt: null,
      endedAt: null,
      endReason: null,
      participants: [
        invited(who(1), 'joining', time(0)),
        ...callees.map((state, i) => invited(who(i + 2), state, time(0))),
      ],
    },
    time(0),
  );
}
const states = (call: CallState) => call.participants.map((p) => p.state).join(' ');

test('calls#answer: answered, connected, and over when one of two leaves', () => {
  let call = callOf(['ringing']);
  assert.equal(call.status, 'ringing');
  call = withMove(call, 2, 'join', time(5));
  assert.deepEqual([call.status, call.answeredAt, states(call)], ['active', time(5), 'joining joining']);
  call = withMove(withMove(call, 1, 'connect', time(6)), 2, 'connect', time(7));
  assert.equal(states(call), 'joined joined');
  call = withMove(call, 2, 'leave', time(67));
  assert.deepEqual([call.status, call.endReason, states(call)], ['ended', 'completed', 'left left']);
  assert.deepEqual(
    call.participants.map((p) => p.seconds),
    [61, 60],
  );
});

test('calls#unanswered: why a call that nobody answered ended', () => {
  const reason = (call: CallState) => call.endReason;
  assert.equal(reason(callOf(['busy'])), 'busy');
  assert.equal(reason(callOf([])), 'busy');
  assert.equal(reason(withMove(callOf(['ringing', 'busy']), 2, 'decline', time(1))), 'declined');
  assert.equal(reason(withMove(callOf(['ringing', 'ringing']), 2, 'decline', time(1))), null);
  assert.equal(reason(withMove(callOf(['ringing']), 1, 'leave', time(1))), 'cancelled');
  assert.equal(reason(withMove(callOf(['ringing']), 2, 'leave', time(1))), 'cancelled');
  assert.equal(reason(rungOut(callOf(['ringing', 'ringing']), time(45))), 'missed');
  assert.equal(states(rungOut(callOf(['ringing', 'busy']), time(45))), 'left missed busy');
});

test('calls#ring-timeout: a group call goes on until the last one leaves; who did not answer in 45 s has missed it', () => {
  let call = withMove(callOf(['ringing', 'ringing', 'ringing']), 2, 'join', time(1));
  call = rungOut(call, time(45));
  assert.deepEqual([call.status, states(call)], ['active', 'joining joining missed missed']);
  call = withMove(call, 1, 'leave', time(50));
  assert.equal(call.status, 'active');
  call = withMove(call, 3, 'join', time(51));
  call = withNewcomer(call, invited(who(9), 'joining', time(52)), time(52));
  assert.equal(states(call), 'left joining joining missed joining');
  for (const usr of [2, 3]) call = withMove(call, usr, 'leave', time(60));
  assert.equal(call.status, 'active');
  call = withMove(call, 9, 'leave', time(61));
  assert.deepEqual([call.status, call.endReason], ['ended', 'completed']);
});

test('a participant who comes back is connected anew, and its time adds up', () => {
  let one = invited(who(1), 'ringing', time(0));
  for (const [move, at] of [
    ['join', 1],
    ['connect', 2],
    ['leave', 12],
    ['join', 20],
    ['connect', 21],
    ['join', 25],
    ['connect', 26],
    ['leave', 31],
  ] as const)
    one = moved(one, move, time(at));
  assert.deepEqual([one.state, one.seconds, one.joinedAt, one.leftAt], ['left', 20, time(2), time(31)]);
  assert.equal(moved(one, 'decline', time(32)), one, 'a move that is not drawn changes nothing');
});

test('whatever happens in whatever order: what holds of every call', () => {
  const move = fc.record({
    usr: fc.integer({ min: 1, max: 4 }),
    what: fc.constantFrom<ParticipantMove | 'ring' | 'end'>(
      ...(['join', 'join', 'connect', 'leave', 'decline', 'miss', 'ring', 'end'] as const),
    ),
  });
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('ringing', 'busy'), { maxLength: 3 }),
      fc.boolean(),
      fc.array(move),
      (callees, direct, list) => {
        let call = callOf(callees, direct);
        list.forEach(({ usr, what }, i) => {
          const at = time(i + 1);
          const before = call;
          call =
            what === 'ring'
              ? rungOut(call, at)
              : what === 'end'
                ? ended(call, 'ended_by_server', at)
                : withMove(call, usr, what, at);
          if (before.status === 'ended') assert.equal(call, before);
          if (before.answeredAt !== null) assert.equal(call.answeredAt, before.answeredAt);
        });
        assert.equal(call.endReason !== null, call.status === 'ended');
        assert.equal(call.endedAt !== null, call.status === 'ended');
        if (call.status === 'active') assert.ok(call.answeredAt);
        const here = call.participants.filter(isIn).length;
        if (call.status === 'ended')
          assert.ok(call.participants.every((p) => !isIn(p) && p.state !== 'ringing'));
        else assert.ok(here > (call.status === 'active' && call.direct ? 1 : 0));
        if (call.endReason === 'missed' || call.endReason === 'busy') assert.equal(call.answeredAt, null);
      },
    ),
    { seed: seed('calls'), numRuns: 2_000 },
  );
});
