/**
 * Array parameters in PostgreSQL's binary form, which costs both sides a fraction of the text form: a header
 * (dimensions, whether there are nulls, element type, length, lower bound), then each element's length and bytes. The
 * driver sends a Buffer unchanged, so the parameter must have exactly this array type in the statement.
 */

const headBytes = 20;
const emptyBytes = 12;
const oids = { boolean: 16, bigint: 20, int: 23, text: 25 } as const;

function encode<T>(
  oid: number,
  values: readonly (T | null)[],
  bytesOf: (value: T) => number,
  write: (bytes: Buffer, value: T, at: number) => void,
): Buffer {
  let size = headBytes;
  for (const value of values) size += 4 + (value === null ? 0 : bytesOf(value));
  const bytes = Buffer.allocUnsafe(size);
  // An empty array has no dimension.
  bytes.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  bytes.writeInt32BE(1, 4);
  bytes.writeInt32BE(oid, 8);
  bytes.writeInt32BE(values.length, 12);
  bytes.writeInt32BE(1, 16);
  let at = headBytes;
  for (const value of values) {
    const length = value === null ? -1 : bytesOf(value);
    at = bytes.writeInt32BE(length, at);
    if (value === null) continue;
    write(bytes, value, at);
    at += length;
  }
  return values.length === 0 ? bytes.subarray(0, emptyBytes) : bytes;
}

export const intArray = (values: readonly number[]): Buffer =>
  encode(
    oids.int,
    values,
    () => 4,
    (bytes, value, at) => bytes.writeInt32BE(value, at),
  );

export const booleanArray = (values: readonly boolean[]): Buffer =>
  encode(
    oids.boolean,
    values,
    () => 1,
    (bytes, value, at) => bytes.writeUInt8(value ? 1 : 0, at),
  );

/** For integers from 0 to 2^53. */
export const bigintArray = (values: readonly (number | null)[]): Buffer =>
  encode(
    oids.bigint,
    values,
    () => 8,
    (bytes, value, at) => {
      bytes.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at);
      bytes.writeUInt32BE(value % 0x1_0000_0000, at + 4);
    },
  );

export const textArray = (values: readonly (string | null)[]): Buffer =>
  encode(
    oids.text,
    values,
    (value) => Buffer.byteLength(value),
    (bytes, value, at) => bytes.write(value, at),
  );
