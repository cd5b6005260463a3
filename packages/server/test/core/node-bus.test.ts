import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeBus } from '../../src/features/node-bus.ts';
import type { NodeMessageKind, NodeMessages } from '../../src/features/node-bus.ts';
import type { Bus, BusListener } from '../../src/platform/bus/port.ts';

/** Messages between nodes. Their form stays as it is, because nodes of two versions run side by side (docs/cluster.md). */

const frame = '{"t":"x"}\n';
const seat = { env: 1, call: 2, user: 3 };
const samples: { [K in NodeMessageKind]: NodeMessages[K][] } = {
  event: [{ env: 1, conv: 2, cid: 'c', seq: 3, e: 'member.added', frame, join: [4] }],
  relay: [
    { frame, except: 7 },
    { frame, except: null },
  ],
  receipt: [{ cid: 'c', userId: 'u', lastReadSeq: 1 }],
  toUser: [
    { env: 7, frame, where: {} },
    { env: 7, frame, where: { except: 'ses_2', confirm: 'call_1' } },
  ],
  userOut: [4003],
  sessionOut: ['ses_1'],
  evict: ['ses_1'],
  silence: [''],
  presence: [frame],
  block: [{ user: 1, other: 2, cid: 'c', blocked: true }],
  beat: ['node'],
  trace: [{ id: 't', env: 1, user: 2, node: 'n', ms: 3 }],
  traced: [{ id: 't', lines: [], dropped: 1 }],
  mediaRequest: [{ id: 1, from: 'n', request: { ...seat, method: 'mute', d: { source: 'mic' } } }],
  mediaAnswer: [{ id: 1, result: { value: true } }],
};

function node() {
  let listener!: BusListener;
  const published: [channel: string, payload: string][] = [];
  const bus = {
    alone: false,
    listen: (its: BusListener) => (listener = its),
    publish: (channel: string, payload: string) => published.push([channel, payload]),
  };
  const nodes = new NodeBus(bus as unknown as Bus);
  const heard: unknown[] = [];
  for (const kind of Object.keys(samples) as NodeMessageKind[])
    nodes.on(kind, (message, about) => heard.push([kind, message, about]));
  return {
    bus,
    nodes,
    published,
    heard,
    receive: (...given: [string, string]) => listener.message(...given),
  };
}

test('docs/cluster.md: each kind of message has the form that nodes of other versions read, and only its own handler gets it', () => {
  for (const [kind, list] of Object.entries(samples) as [NodeMessageKind, never[]][])
    for (const message of list) {
      const { nodes, published, heard, receive } = node();
      nodes.publish(kind, message, 'x:1', 'x:2');
      const wire = JSON.stringify([kind, message]);
      assert.deepEqual(published, [
        ['x:1', wire],
        ['x:2', wire],
      ]);
      receive('x:1', wire);
      assert.deepEqual(heard, [[kind, message, '1']]);
    }
});

test('a message that is incomplete or of an unknown kind reaches no handler', () => {
  const { heard, receive } = node();
  for (const payload of ['', '[', '{}', 'null', '[]', '["nothing",1]']) receive('c:1', payload);
  assert.deepEqual(heard, []);
});

test('a node without others publishes nothing', () => {
  const { bus, nodes, published } = node();
  bus.alone = true;
  nodes.publish('beat', 'here', 'n:all');
  assert.deepEqual(published, []);
});
