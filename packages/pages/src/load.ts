import { createHash } from 'node:crypto';
import { glob, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runBuilder } from './builder.ts';
import { unpacked } from './files.ts';
import type { Files } from './files.ts';

/**
 * Loads what a browser is given. No bundle is committed: the first who asks for it in a checkout builds it (a few
 * seconds, in a process of its own) and keeps it under the hash of everything that it was made from; later starts read it
 * back. The npm package of the server has it finished in place of the sources.
 */

export interface Source {
  name: string;
  /** The module whose `build` makes the files. */
  builder: URL;
  /** Patterns, from the root of the checkout, of everything that the files are made from, but for packages of others. */
  sources: string[];
  /** Where the npm package has the files. */
  prebuilt: URL;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Beside the sources; where it cannot be written, every start builds. */
const cacheFolder = join(root, 'node_modules/.cache/parley');

/** @returns a function that loads the files once. The next call repeats a failed build. */
export function createLoader(source: Source): () => Promise<Files> {
  let loading: Promise<Files> | undefined;
  return () => {
    loading ??= load(source);
    loading.catch(() => (loading = undefined));
    return loading;
  };
}

async function load({ name, builder, sources, prebuilt }: Source): Promise<Files> {
  const packaged = await kept(prebuilt);
  if (packaged) return packaged;
  const place = join(cacheFolder, `${name}-${await hashOf(sources)}.bin`);
  const known = await kept(place);
  if (known) return known;
  const built = await runBuilder(builder);
  const files = unpacked(built);
  await keep(name, place, built);
  return files;
}

async function kept(place: string | URL): Promise<Files | null> {
  try {
    return unpacked(await readFile(place));
  } catch {
    return null;
  }
}

async function hashOf(sources: string[]): Promise<string> {
  const hash = createHash('sha256');
  const names = await Array.fromAsync(
    glob(['package-lock.json', 'packages/pages/src/*.ts', ...sources], { cwd: root }),
  );
  for (const name of names.sort()) hash.update(`\0${name}\0`).update(await readFile(join(root, name)));
  return hash.digest('hex').slice(0, 32);
}

/** Several processes may build at once: each writes a separate file, and the last rename wins. */
async function keep(name: string, place: string, built: Buffer): Promise<void> {
  const making = `${place}.${process.pid}`;
  const old = new RegExp(`^${name}-[0-9a-f]{32}(\\.bin)?$`);
  try {
    await mkdir(cacheFolder, { recursive: true });
    await writeFile(making, built);
    await rename(making, place);
    for (const other of await readdir(cacheFolder))
      if (old.test(other) && join(cacheFolder, other) !== place)
        await rm(join(cacheFolder, other), { recursive: true, force: true });
  } catch {
    // The disk is full, or the folder cannot be written: the next start builds again.
    await rm(making, { force: true }).catch(() => undefined);
  }
}
