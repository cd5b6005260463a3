import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Decoding } from '../../src/calls/decoding.ts';

/** Pictures that arrive and are never decoded. */

const video = (ssrc: number, packetsReceived: number, framesDecoded = 0) =>
  ({ type: 'inbound-rtp', kind: 'video', ssrc, packetsReceived, framesDecoded }) as unknown as RTCStats;
const sound = { type: 'inbound-rtp', kind: 'audio', ssrc: 9, packetsReceived: 9_999 } as unknown as RTCStats;

test('a stream with packets and no picture for three measurements cannot be decoded, until it can', () => {
  const decoding = new Decoding();
  const found = [100, 200, 300, 400].map((n) => [
    ...decoding.measure([video(1, n), video(2, n, n / 10), video(1234, n), video(3, 5), sound]),
  ]);
  assert.deepEqual(found, [[], [], [1], [1]]);
  assert.deepEqual([...decoding.measure([video(1, 500, 1)])], []);
});

test('a stream that is paused is not taken for one that cannot be decoded', () => {
  const decoding = new Decoding();
  for (const n of [0, 40, 40, 40, 40]) assert.deepEqual([...decoding.measure([video(1, n)])], []);
});
