import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCalls } from '../../src/calls/index.ts';
import type { Call, Calls } from '../../src/calls/index.ts';
import type { Client } from '../../src/index.ts';

/** The calls that go on in the user's conversations, as the service tells them. */

const call = (id: string, cid: string, status: 'ringing' | 'active' | 'ended' = 'active'): Call =>
  ({ id, conversationId: cid, status, participants: [] }) as unknown as Call;

function setting() {
  let answer: (data: Call[]) => void = () => undefined;
  let hear: (frame: { t: string; d: unknown }) => void = () => undefined;
  const client = {
    state: 'connected',
    userId: 'ann',
    on: (name: string, fn: typeof hear) => {
      if (name === 'frame') hear = fn;
      return () => undefined;
    },
    wire: { http: () => new Promise((done) => (answer = (data) => done({ data }))) },
  } as unknown as Client;
  const calls: Calls = createCalls(client);
  return {
    calls,
    live: () => calls.live.get().map(({ id, status }) => `${id} ${status}`),
    hear: (t: string, one: Call, more: object = {}) => hear({ t, d: { call: one, ...more } }),
    answer: async (data: Call[]) => {
      answer(data);
      await new Promise((done) => setImmediate(done));
    },
  };
}

test('calls#record: live calls are asked for, follow what is told, and go when they end', async () => {
  const { calls, live, hear, answer } = setting();
  let told = 0;
  calls.live.subscribe(() => told++);
  await answer([call('call_1', 'conv_1')]);
  assert.deepEqual([live(), told], [['call_1 active'], 1]);
  hear('call.updated', call('call_2', 'conv_2', 'ringing'));
  hear('call.updated', call('call_2', 'conv_2'));
  assert.deepEqual(live(), ['call_2 active', 'call_1 active']);
  // Over for this device, and not for the others.
  hear('call.ended', call('call_2', 'conv_2'), { endedHere: 'missed' });
  assert.deepEqual(live(), ['call_2 active', 'call_1 active']);
  // The end of an earlier call comes late.
  hear('call.ended', call('call_0', 'conv_1', 'ended'));
  hear('call.ended', call('call_2', 'conv_2', 'ended'));
  assert.deepEqual(live(), ['call_1 active']);
  calls.close();
  assert.deepEqual(live(), []);
});

test('what is heard while the list is on its way is newer than the list', async () => {
  const { live, hear, answer } = setting();
  hear('call.ended', call('call_1', 'conv_1', 'ended'));
  hear('call.updated', call('call_3', 'conv_3'));
  await answer([call('call_1', 'conv_1'), call('call_2', 'conv_2')]);
  assert.deepEqual(live(), ['call_3 active', 'call_2 active']);
});

test('calls#record: a call that rings while the list is on its way goes on ringing, and one that ended does not ring', async () => {
  const { calls, hear, answer } = setting();
  const rings = (id: string, status: 'ringing' | 'ended' = 'ringing'): Call => ({
    ...call(id, `conv of ${id}`, status),
    participants: [{ userId: 'ann', state: 'ringing', invitedAt: '', joinedAt: null, leftAt: null }],
  });
  const rang: string[] = [];
  calls.on('incoming', (one) => rang.push(one.id));
  hear('call.incoming', rings('call_new'));
  hear('call.ended', rings('call_over', 'ended'));
  await answer([rings('call_over'), rings('call_old')]);
  assert.deepEqual(
    calls.get().map((one) => `${one.id} ${one.state}`),
    ['call_new incoming', 'call_old incoming'],
  );
  assert.deepEqual(rang, ['call_new', 'call_old']);
  calls.close();
});

test('at most 100 live calls are kept', async () => {
  const { calls, hear, answer } = setting();
  await answer([]);
  for (let i = 0; i < 130; i++) hear('call.updated', call(`call_${i}`, `conv_${i}`));
  assert.equal(calls.live.get().length, 100);
  assert.equal(calls.live.get()[0]!.id, 'call_129');
});
