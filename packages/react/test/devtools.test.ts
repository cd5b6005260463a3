import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aboutOf, textOf } from '../src/devtools/frames.ts';
import { passagesOf } from '../src/devtools/passages.ts';
import { createWire } from '../src/devtools/wire.ts';

test('a wire keeps the last 1,000 frames of a socket, none of them with a token, and none while paused', (t) => {
  class Socket extends EventTarget {
    send(): void {}
  }
  const real = globalThis.WebSocket;
  t.after(() => void (globalThis.WebSocket = real));
  globalThis.WebSocket = Socket as unknown as typeof WebSocket;
  const wire = createWire({ now: () => 5 });
  let told = 0;
  wire.subscribe(() => told++);
  const socket = new wire.WebSocket('ws://chat.test', []) as unknown as Socket & { send(data: string): void };
  socket.send(JSON.stringify({ t: 'auth', d: { token: 'secret', env: 'env_1' } }));
  socket.dispatchEvent(new MessageEvent('message', { data: '{"t":"hello","d":{"userId":"ann"}}' }));
  socket.dispatchEvent(Object.assign(new Event('close'), { code: 1006, reason: 'away' }));
  assert.deepEqual(
    wire.get().map(({ way, data }) => [way, data]),
    [
      ['out', { t: 'auth', d: { token: '…', env: 'env_1' } }],
      ['in', { t: 'hello', d: { userId: 'ann' } }],
      ['none', { t: 'closed', code: 1006, why: 'away' }],
    ],
  );
  assert.equal(told, 3);
  wire.note('in', 'no frame');
  for (let i = 0; i < 1_000; i++) wire.note('in', { t: 'hb', i });
  assert.equal(wire.get().length, 1_000);
  assert.equal(wire.get().at(-1)!.data['i'], 999);
  wire.pause(true);
  wire.note('in', { t: 'hb', i: 'unseen' });
  assert.equal(wire.get().at(-1)!.data['i'], 999);
  wire.clear();
  assert.deepEqual(wire.get(), []);
});

test('what people wrote is hidden unless revealed', () => {
  const d = {
    cid: 'conv_1',
    clientMsgId: 'c_1',
    text: 'Meet me at nine',
    metadata: { mood: 'blue', type: 'secret' },
    attachments: [{ id: 'att_1', name: 'plan.pdf', size: 9 }],
    mentions: ['ann'],
  };
  const frame = { no: 1, at: 0, way: 'out', data: { t: 'message.send', id: 7, d } } as const;
  const name = (id: string) => id;
  assert.deepEqual(JSON.parse(textOf(frame, false)), {
    t: 'message.send',
    id: 7,
    d: {
      cid: 'conv_1',
      clientMsgId: 'c_1',
      text: '…',
      metadata: '…',
      attachments: [{ id: 'att_1', name: '…', size: 9 }],
      mentions: ['…'],
    },
  });
  assert.equal(aboutOf(frame, name, false), '15 characters');
  assert.match(textOf(frame, true), /Meet me at nine/);
  assert.equal(aboutOf(frame, name, true), '“Meet me at nine”');
});

test('a sequence of three people: who said what in which order, whom it has reached, and what waits', () => {
  const [a, b, c] = [createWire(), createWire(), createWire()];
  const cid = 'conv_1';
  const event = (seq: number, senderId: string) => ({
    t: 'event',
    e: 'message.new',
    cid,
    seq,
    d: { message: { senderId } },
  });
  a.note('out', { t: 'message.send', d: { cid, clientMsgId: 'one' } });
  b.note('in', event(4, 'bob'));
  a.note('in', event(4, 'bob'));
  a.note('in', { t: 'ack', d: { clientMsgId: 'one', seq: 5 } });
  b.note('in', event(5, 'ann'));
  b.note('in', { t: 'receipt', d: { cid, userId: 'cem', lastReadSeq: 4 } });
  c.note('out', { t: 'message.send', d: { cid, clientMsgId: 'two' } });
  c.note('out', { t: 'message.send', d: { cid: 'conv_2', clientMsgId: 'three' } });
  const people = [
    { userId: 'ann', frames: a.get() },
    { userId: 'bob', frames: b.get() },
    { userId: 'cem', frames: c.get() },
  ];
  assert.deepEqual(passagesOf(cid, people), [
    { key: '4', from: 1, seq: 4, heard: [0, 2] },
    { key: '5', from: 0, seq: 5, heard: [1] },
    { key: 'two', from: 2, seq: null, heard: [] },
  ]);
});
