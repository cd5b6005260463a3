/** WebSocket frames of a client, at the least cost: no object per frame, no copy of whole ones (RFC 6455, 5.2). */

/** Not zero: some servers skip the unmasking then, which no browser would let them do. */
const mask = [0x5a, 0x13, 0xc7, 0x2e] as const;

export function maskedFrame(payload: string, opcode = 1): Buffer {
  const length = Buffer.byteLength(payload);
  if (length > 65_535) throw new Error('the load generator sends small frames only');
  const head = length < 126 ? 6 : 8;
  const frame = Buffer.allocUnsafe(head + length);
  frame[0] = 0x80 | opcode;
  if (head === 6) frame[1] = 0x80 | length;
  else {
    frame[1] = 0x80 | 126;
    frame[2] = length >> 8;
    frame[3] = length & 255;
  }
  for (let i = 0; i < 4; i++) frame[head - 4 + i] = mask[i]!;
  frame.write(payload, head, 'utf8');
  for (let i = 0; i < length; i++) frame[head + i]! ^= mask[i & 3]!;
  return frame;
}

export type OnFrame = (bytes: Buffer, start: number, end: number, opcode: number) => void;

/** Frames larger than this are refused: no server here has reason to send one. */
const maxFrame = 4 * 1024 * 1024;

export class FrameReader {
  #rest: Buffer | null = null;

  /** The first `length` bytes of `chunk`, which the caller may use again afterwards. */
  read(chunk: Buffer, length: number, onFrame: OnFrame): void {
    let bytes = chunk;
    let end = length;
    if (this.#rest) {
      bytes = Buffer.concat([this.#rest, chunk.subarray(0, length)]);
      end = bytes.length;
      this.#rest = null;
    }
    let at = 0;
    while (end - at >= 2) {
      const second = bytes[at + 1]!;
      let size = second & 127;
      let head = 2;
      if (size === 126) {
        if (end - at < 4) break;
        size = (bytes[at + 2]! << 8) | bytes[at + 3]!;
        head = 4;
      } else if (size === 127) {
        if (end - at < 10) break;
        if (bytes.readUInt32BE(at + 2) !== 0) throw new Error('a frame is too large');
        size = bytes.readUInt32BE(at + 6);
        head = 10;
      }
      if (second & 128) throw new Error('a server masks no frames');
      if (size > maxFrame) throw new Error('a frame is too large');
      if (!(bytes[at]! & 128)) throw new Error('a message came in fragments');
      if (end - at < head + size) break;
      const start = at + head;
      at = start + size;
      onFrame(bytes, start, at, bytes[start - head]! & 15);
    }
    if (at < end) this.#rest = Buffer.from(bytes.subarray(at, end));
  }
}
