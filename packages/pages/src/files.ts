import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { brotliCompress, constants, gzip } from 'node:zlib';

export interface File {
  etag: string;
  /** The body by content encoding; what is compressed already has one form. */
  bodies: { identity: Buffer; gzip?: Buffer; br?: Buffer };
}
export type Files = ReadonlyMap<string, File>;

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

/** Each file with its compressed forms. */
export async function compressed(made: ReadonlyMap<string, Uint8Array>): Promise<Files> {
  const files = new Map<string, File>();
  for (const [name, contents] of made) {
    const identity = Buffer.from(contents);
    const etag = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
    if (name.endsWith('.woff2')) files.set(name, { etag, bodies: { identity } });
    else {
      const [br, gz] = await Promise.all([
        toBrotli(identity, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
        toGzip(identity, { level: 9 }),
      ]);
      files.set(name, { etag, bodies: { identity, br, gzip: gz } });
    }
  }
  return files;
}

/** The files as one; `unpacked` reads it back. */
export const packed = (files: Files): Buffer => serialize(files);

export function unpacked(one: Uint8Array): Files {
  const files = deserialize(one) as Map<string, { etag: string; bodies: Record<string, Uint8Array> }>;
  const buffers = (bodies: Record<string, Uint8Array>) =>
    Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, Buffer.from(body)]));
  return new Map(
    [...files].map(([name, { etag, bodies }]) => [name, { etag, bodies: buffers(bodies) as File['bodies'] }]),
  );
}
