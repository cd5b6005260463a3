import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Receiver } from './receiver.ts';
import { FrameReader, maskedFrame } from '../src/load/frames.ts';

/** Splits what a server sends in every way that a network may. */
function read(chunks: Buffer[]): { text: string; opcode: number }[] {
  const reader = new FrameReader();
  const frames: { text: string; opcode: number }[] = [];
  const shared = Buffer.alloc(256 * 1024);
  for (const chunk of chunks) {
    chunk.copy(shared);
    reader.read(shared, chunk.length, (bytes, start, end, opcode) =>
      frames.push({ text: bytes.toString('utf8', start, end), opcode }),
    );
    shared.fill(0, 0, chunk.length); // the caller uses its buffer again
  }
  return frames;
}

function serverFrame(text: string, opcode = 1): Buffer {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126
      ? Buffer.from([0x80 | opcode, payload.length])
      : payload.length < 65_536
        ? Buffer.from([0x80 | opcode, 126, payload.length >> 8, payload.length & 255])
        : Buffer.concat([Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0]), uint32(payload.length)]);
  return Buffer.concat([head, payload]);
}
function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

test('RFC 6455, 5.2: masked frames are what a server understands, at every length', async () => {
  const texts = ['', 'a', 'x'.repeat(125), 'x'.repeat(126), 'ü'.repeat(2_000), 'x'.repeat(65_535)];
  const received = await Receiver.texts(texts.map((text) => maskedFrame(text)));
  assert.deepEqual(received, texts);
  assert.throws(() => maskedFrame('x'.repeat(65_536)));
});

test('the mask is not zero: a server has to unmask', () => {
  const frame = maskedFrame('hello');
  assert.equal(frame[1]! & 0x80, 0x80);
  assert.notEqual(frame.readUInt32BE(2), 0);
  assert.notEqual(frame.toString('utf8', 6), 'hello');
});

test('frames are found however the stream is cut', () => {
  const check = (texts: string[], sizes: number[]): void => {
    const stream = Buffer.concat([...texts.map((t) => serverFrame(t)), serverFrame('ping', 9)]);
    const expected = [...texts.map((text) => ({ text, opcode: 1 })), { text: 'ping', opcode: 9 }];
    for (const size of sizes) {
      const chunks: Buffer[] = [];
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size));
      assert.deepEqual(read(chunks), expected, `cut into ${size}`);
    }
  };
  check(['first', 'x'.repeat(300), '', 'ü'], [1, 2, 3, 7, 100, 10_000]);
  check(['first', 'y'.repeat(70_000), 'last'], [4_096, 65_536, 200_000]);
});

test('what no server may send is refused', () => {
  assert.throws(() => read([Buffer.from([0x81, 0x85, 1, 2, 3, 4, 0, 0, 0, 0, 0])]), /masks/);
  assert.throws(() => read([Buffer.from([0x01, 0x01, 0x61])]), /fragments/);
  assert.throws(
    () => read([Buffer.concat([Buffer.from([0x81, 127, 0, 0, 0, 0]), uint32(2 ** 31)])]),
    /too large/,
  );
  assert.throws(() => read([Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0])]), /too large/);
});
