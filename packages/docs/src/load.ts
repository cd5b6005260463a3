import { createHash } from 'node:crypto';
import { glob, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { brotliCompress, constants, gzip } from 'node:zlib';

/**
 * The site of the service. The first request of a checkout builds it (a second or two, in a thread of its own) and keeps
 * it under the hash of everything that it was made from; later starts read it back. The npm package of the server has
 * it finished in place of the sources.
 */

export interface File {
  etag: string;
  /** The body by content encoding; what is compressed already has one form. */
  bodies: { identity: Buffer; gzip?: Buffer; br?: Buffer };
}
export type Files = Map<string, File>;

const root = fileURLToPath(new URL('../../../', import.meta.url));
const prebuilt = fileURLToPath(new URL('../prebuilt.bin', import.meta.url));
const cacheFolder = join(root, 'node_modules/.cache/parley');
/** Everything that the site is made from, but for packages of others. */
const sources = [
  'package-lock.json',
  'docs/**/*.md',
  'packages/docs/{src,browser}/**/*.{ts,css}',
  'packages/protocol/{src,generated}/**/*.{ts,json}',
  'packages/{client,react,server-sdk}/src/**/*.{ts,tsx}',
  'packages/{client,react,server-sdk}/package.json',
  'packages/react/src/tokens.css',
];
const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

export async function loadSite(): Promise<Files> {
  const packaged = await kept(prebuilt);
  if (packaged) return packaged;
  const place = join(cacheFolder, `docs-${await sourceHash()}.bin`);
  const known = await kept(place);
  if (known) return known;
  const files = await compressed(await built());
  await keep(place, files);
  return files;
}

function built(): Promise<Map<string, Uint8Array>> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./build/worker.ts', import.meta.url));
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('The builder of the documentation ended without a result.')));
  });
}

/** Each file with its compressed forms. */
export async function compressed(site: Map<string, Uint8Array>): Promise<Files> {
  const files: Files = new Map();
  for (const [name, contents] of site) {
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

/** The files as one; `kept` reads it back. */
export const packed = (files: Files): Buffer => serialize(files);

async function kept(place: string): Promise<Files | null> {
  try {
    const files = deserialize(await readFile(place)) as Map<
      string,
      { etag: string; bodies: Record<string, Uint8Array> }
    >;
    const buffers = (bodies: Record<string, Uint8Array>) =>
      Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, Buffer.from(body)]));
    return new Map(
      [...files].map(([name, { etag, bodies }]) => [
        name,
        { etag, bodies: buffers(bodies) as File['bodies'] },
      ]),
    );
  } catch {
    return null;
  }
}

async function sourceHash(): Promise<string> {
  const hash = createHash('sha256');
  const names = await Array.fromAsync(glob(sources, { cwd: root }));
  for (const name of names.sort()) hash.update(`\0${name}\0`).update(await readFile(join(root, name)));
  return hash.digest('hex').slice(0, 32);
}

/** Several processes may build at once: each writes a file of its own, and the last rename wins. */
async function keep(place: string, files: Files): Promise<void> {
  const making = `${place}.${process.pid}`;
  try {
    await mkdir(cacheFolder, { recursive: true });
    await writeFile(making, packed(files));
    await rename(making, place);
    for (const old of await readdir(cacheFolder))
      if (/^docs-[0-9a-f]{32}\.bin$/.test(old) && join(cacheFolder, old) !== place)
        await rm(join(cacheFolder, old), { force: true });
  } catch {
    // The disk is full, or the folder cannot be written: the next start builds again.
    await rm(making, { force: true }).catch(() => undefined);
  }
}
