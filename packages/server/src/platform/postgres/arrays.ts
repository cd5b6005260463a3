/**
 * Array parameters in PostgreSQL's binary form, which costs both sides a fraction of the text form: a header (dimensions,
 * whether there are nulls, the elements' type, length, lower bound), then each element's length and bytes. The driver sends
 * a Buffer as it is, so the parameter's type in the statement must be the array's own.
 */

const headBytes = 20;
const oids = { boolean: 16, bigint: 20, int: 23, text: 25 } as const;

function head(bytes: Buffer, oid: number, length: number): Buffer {
  bytes.writeInt32BE(1, 0);
  bytes.writeInt32BE(1, 4);
  bytes.writeInt32BE(oid, 8);
  bytes.writeInt32BE(length, 12);
  bytes.writeInt32BE(1, 16);
  return bytes;
}

function empty(oid: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeInt32BE(oid, 8);
  return bytes;
}

export function intArray(values: readonly number[]): Buffer {
  if (values.length === 0) return empty(oids.int);
  const bytes = head(Buffer.allocUnsafe(headBytes + values.length * 8), oids.int, values.length);
  let at = headBytes;
  for (const value of values) {
    at = bytes.writeInt32BE(4, at);
    at = bytes.writeInt32BE(value, at);
  }
  return bytes;
}

export function booleanArray(values: readonly boolean[]): Buffer {
  if (values.length === 0) return empty(oids.boolean);
  const bytes = head(Buffer.allocUnsafe(headBytes + values.length * 5), oids.boolean, values.length);
  let at = headBytes;
  for (const value of values) {
    at = bytes.writeInt32BE(1, at);
    bytes[at++] = value ? 1 : 0;
  }
  return bytes;
}

/** Whole numbers from 0 to 2^53. */
export function bigintArray(values: readonly (number | null)[]): Buffer {
  if (values.length === 0) return empty(oids.bigint);
  const bytes = head(Buffer.allocUnsafe(headBytes + values.length * 12), oids.bigint, values.length);
  let at = headBytes;
  for (const value of values) {
    if (value === null) {
      at = bytes.writeInt32BE(-1, at);
      continue;
    }
    at = bytes.writeInt32BE(8, at);
    at = bytes.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at);
    at = bytes.writeUInt32BE(value % 0x1_0000_0000, at);
  }
  return bytes.subarray(0, at);
}

export function textArray(values: readonly (string | null)[]): Buffer {
  if (values.length === 0) return empty(oids.text);
  let size = headBytes;
  for (const value of values) size += 4 + (value === null ? 0 : Buffer.byteLength(value));
  const bytes = head(Buffer.allocUnsafe(size), oids.text, values.length);
  let at = headBytes;
  for (const value of values) {
    if (value === null) {
      at = bytes.writeInt32BE(-1, at);
      continue;
    }
    const length = bytes.write(value, at + 4);
    bytes.writeInt32BE(length, at);
    at += 4 + length;
  }
  return bytes;
}
