import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NetworkMeter } from '../../src/calls/network.ts';

/** The network's quality from what a browser reports. */

const stats = (fields: {
  lost?: number;
  received?: number;
  rtt?: number;
  sent?: number;
  limited?: boolean;
  probed?: number;
}) =>
  [
    { type: 'inbound-rtp', packetsLost: fields.lost ?? 0, packetsReceived: fields.received ?? 0 },
    {
      type: 'inbound-rtp',
      ssrc: 1234,
      packetsLost: (fields.probed ?? 0) * 9,
      packetsReceived: fields.probed ?? 0,
    },
    { type: 'remote-inbound-rtp', fractionLost: fields.sent ?? 0 },
    { type: 'candidate-pair', nominated: true, currentRoundTripTime: fields.rtt ?? 0.02 },
    { type: 'candidate-pair', nominated: false, currentRoundTripTime: 9 },
    { type: 'outbound-rtp', qualityLimitationReason: fields.limited ? 'bandwidth' : 'none' },
  ] as unknown as RTCStats[];

test('5 is perfect; less has the reason that is worst: loss on either way, delay, or too little bandwidth', () => {
  const meter = new NetworkMeter();
  assert.deepEqual(meter.measure(stats({ lost: 900, received: 1_000 })), { level: 5, reason: null });
  // Counted since the last time: what was lost before is forgiven.
  assert.deepEqual(meter.measure(stats({ lost: 900, received: 2_000 })), { level: 5, reason: null });
  assert.deepEqual(meter.measure(stats({ lost: 950, received: 2_950 })), { level: 3, reason: 'loss' });
  assert.deepEqual(meter.measure(stats({ lost: 1_250, received: 3_650 })), { level: 1, reason: 'loss' });
  const level = (fields: Parameters<typeof stats>[0]) => new NetworkMeter().measure(stats(fields));
  assert.deepEqual(level({ sent: 0.02 }), { level: 4, reason: 'loss' });
  assert.deepEqual(
    [0.2, 0.4, 0.7, 2].map((rtt) => level({ rtt }).level),
    [4, 3, 2, 1],
  );
  assert.equal(level({ rtt: 2 }).reason, 'delay');
  assert.deepEqual(level({ limited: true }), { level: 3, reason: 'bandwidth' });
  assert.equal(level({ limited: true, rtt: 0.7 }).reason, 'delay');
});

test('a handful of packets says nothing about loss', () => {
  const meter = new NetworkMeter();
  meter.measure(stats({}));
  assert.equal(meter.measure(stats({ lost: 5, received: 10 })).level, 5);
});

test('what the media server probes with is no media, and its gaps are no loss', () => {
  const meter = new NetworkMeter();
  meter.measure(stats({ received: 1_000 }));
  assert.deepEqual(meter.measure(stats({ received: 2_000, probed: 300 })), { level: 5, reason: null });
});
