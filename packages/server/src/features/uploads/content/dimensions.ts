import { detect } from './detect.ts';

export interface Dimensions {
  width: number;
  height: number;
}

/** The largest width or height that PNG allows, and that the store keeps. */
const maxSide = 2 ** 31 - 1;
export const isSide = (n: number): boolean => Number.isInteger(n) && n > 0 && n <= maxSide;

/** Width and height of an image as it is shown (orientation applied), or null if its first bytes do not contain them. */
export function dimensions(head: Uint8Array): Dimensions | null {
  const measure = measures[detect(head)?.mime ?? ''];
  try {
    const found = measure?.(Buffer.from(head.buffer, head.byteOffset, head.byteLength));
    return found && isSide(found.width) && isSide(found.height) ? found : null;
  } catch (error) {
    if (error instanceof RangeError) return null; // read past the bytes we have
    throw error;
  }
}

const measures: Record<string, (b: Buffer) => Dimensions | null> = {
  'image/png': (b) =>
    b.toString('latin1', 12, 16) === 'IHDR'
      ? { width: b.readUInt32BE(16), height: b.readUInt32BE(20) }
      : null,
  'image/gif': (b) => ({ width: b.readUInt16LE(6), height: b.readUInt16LE(8) }),
  'image/bmp': (b) =>
    b[14] === 12
      ? { width: b.readUInt16LE(18), height: b.readUInt16LE(20) }
      : { width: b.readInt32LE(18), height: Math.abs(b.readInt32LE(22)) },
  'image/webp': webp,
  'image/jpeg': jpeg,
  'image/avif': heif,
  'image/heic': heif,
};

function webp(b: Buffer): Dimensions | null {
  const chunk = b.toString('latin1', 12, 16);
  if (chunk === 'VP8X') return { width: 1 + b.readUIntLE(24, 3), height: 1 + b.readUIntLE(27, 3) };
  if (chunk === 'VP8 ') return { width: b.readUInt16LE(26) & 0x3fff, height: b.readUInt16LE(28) & 0x3fff };
  if (chunk !== 'VP8L') return null;
  const bits = b.readUInt32LE(21);
  return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
}

/**
 * Goes from segment to segment up to the start of frame. An EXIF orientation of 5 to 8 means that the image lies on
 * its side.
 */
function jpeg(b: Buffer): Dimensions | null {
  let turned = false;
  for (let at = 2; at < b.length;) {
    if (b.readUInt8(at) !== 0xff) return null;
    const marker = b.readUInt8(at + 1);
    if (marker === 0xff || marker === 0x01) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    const length = b.readUInt16BE(at + 2);
    if (length < 2) return null;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      const size = { width: b.readUInt16BE(at + 7), height: b.readUInt16BE(at + 5) };
      return turned ? { width: size.height, height: size.width } : size;
    }
    if (marker === 0xe1) turned ||= orientation(b.subarray(at + 4, at + 2 + length)) >= 5;
    at += 2 + length;
  }
  return null;
}

function orientation(app1: Buffer): number {
  if (app1.toString('latin1', 0, 6) !== 'Exif\0\0' || app1.length < 14) return 1;
  const tiff = app1.subarray(6);
  const little = tiff.toString('latin1', 0, 2) === 'II';
  const u16 = (at: number) =>
    at + 2 > tiff.length ? 0 : little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at);
  const ifd = little ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  for (let entry = 0; entry < Math.min(u16(ifd), 64); entry += 1) {
    const at = ifd + 2 + entry * 12;
    if (u16(at) === 0x0112) return u16(at + 8);
  }
  return 1;
}

/** HEIC and AVIF: meta > iprp > ipco. The largest `ispe` is the picture, smaller ones its tiles and thumbnail. */
function heif(b: Buffer): Dimensions | null {
  const meta = box(b, 'meta');
  const properties = meta && box(meta.subarray(4), 'iprp');
  const container = properties && box(properties, 'ipco');
  if (!container) return null;
  let size: Dimensions | null = null;
  let turned = false;
  for (const { type, body } of boxes(container)) {
    if (type === 'irot') turned ||= (body.readUInt8(0) & 1) === 1;
    if (type !== 'ispe') continue;
    const next = { width: body.readUInt32BE(4), height: body.readUInt32BE(8) };
    if (!size || next.width * next.height > size.width * size.height) size = next;
  }
  return size && turned ? { width: size.height, height: size.width } : size;
}

function box(b: Buffer, wanted: string): Buffer | undefined {
  for (const { type, body } of boxes(b)) if (type === wanted) return body;
  return undefined;
}

function* boxes(b: Buffer): Generator<{ type: string; body: Buffer }, undefined> {
  for (let at = 0; at + 8 <= b.length;) {
    const size = b.readUInt32BE(at);
    if (size < 8) return;
    yield { type: b.toString('latin1', at + 4, at + 8), body: b.subarray(at + 8, at + size) };
    at += size;
  }
}
