import { createHash } from 'node:crypto';
import { glob, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { BuildOptions } from 'esbuild';

/**
 * Bundles the web app from its sources. No bundle is committed: the first start builds and compresses it (a few
 * seconds, in the background) and stores the result under the hash of everything that it was made from; later starts
 * read it back. The npm package of the server has the finished bundle in place of the sources.
 */

export interface Asset {
  contentType: string;
  /** The body by content encoding; what is compressed already has one form. */
  bodies: { identity: Buffer; gzip?: Buffer; br?: Buffer };
}

export interface Bundle {
  /** Assets by hashed name; the content under a name never changes. */
  assets: ReadonlyMap<string, Asset>;
  /** The script and the styles that the page loads first. */
  script: string;
  styles: string[];
  /** The font that every page shows. */
  fonts: string[];
}

const folder = fileURLToPath(new URL('../', import.meta.url));
const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Stored beside the sources; if that folder cannot be written, every start builds. */
const cacheFolder = join(root, 'node_modules/.cache/parley');
const contentTypes: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
};
const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

type Files = Map<string, Buffer>;

export async function loadBundle(): Promise<Bundle> {
  const packaged = await readKept(join(folder, 'prebuilt'));
  if (packaged) return unpacked(packaged);
  const place = join(cacheFolder, `dashboard-${await sourceHash()}`);
  const kept = await readKept(place);
  if (kept) return unpacked(kept);
  const files = await compressed(await bundled());
  await keep(place, files);
  return unpacked(files);
}

export const buildOptions = {
  entryPoints: [join(folder, 'browser/main.tsx')],
  bundle: true,
  minify: true,
  splitting: true,
  format: 'esm' as const,
  target: 'es2022',
  jsx: 'automatic' as const,
  outdir: '/assets',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  loader: { '.woff2': 'file' as const },
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none' as const,
  write: false as const,
  logLevel: 'silent' as const,
} satisfies BuildOptions & { write: false };

async function bundled(): Promise<Files> {
  const { build } = await import('esbuild');
  const result = await build(buildOptions);
  return new Map(result.outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]));
}

/** Each file together with its compressed forms. */
export async function compressed(files: Files): Promise<Files> {
  const forms = await Promise.all(
    [...files].map(async ([name, body]): Promise<[string, Buffer][]> => {
      if (name.endsWith('.woff2')) return [[name, body]];
      return [
        [name, body],
        [`${name}.br`, await toBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })],
        [`${name}.gz`, await toGzip(body, { level: 9 })],
      ];
    }),
  );
  return new Map(forms.flat());
}

function unpacked(files: Files): Bundle {
  const names = [...files.keys()].filter((name) => extname(name) in contentTypes);
  const script = names.find((name) => /^main-.*\.js$/.test(name));
  if (script === undefined) throw new Error('The bundle of the dashboard has no entry.');
  const asset = (name: string): Asset => {
    const [br, gzipped] = [files.get(`${name}.br`), files.get(`${name}.gz`)];
    return {
      contentType: contentTypes[extname(name)]!,
      bodies: { identity: files.get(name)!, ...(br && gzipped ? { br, gzip: gzipped } : {}) },
    };
  };
  return {
    assets: new Map(names.map((name) => [name, asset(name)])),
    script,
    styles: names.filter((name) => /^main-.*\.css$/.test(name)),
    fonts: names.filter((name) => /^geist-latin-wght-normal-.*\.woff2$/.test(name)),
  };
}

async function sourceHash(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(join(root, 'package-lock.json')));
  hash.update(await readFile(fileURLToPath(import.meta.resolve('@parley/react/tokens.css'))));
  const sources: string[] = [];
  for await (const name of glob('{src,browser}/**/*.{ts,tsx,css}', { cwd: folder })) sources.push(name);
  for (const name of sources.sort()) hash.update(`\0${name}\0`).update(await readFile(join(folder, name)));
  return hash.digest('hex').slice(0, 32);
}

async function readKept(place: string): Promise<Files | null> {
  try {
    const names = await readdir(place);
    const read = async (name: string) => [name, await readFile(join(place, name))] as const;
    return new Map(await Promise.all(names.map(read)));
  } catch {
    return null;
  }
}

/** Several processes may build at once: each writes a directory of its own, and the first rename wins. */
async function keep(place: string, files: Files): Promise<void> {
  const making = `${place}.${process.pid}`;
  try {
    await mkdir(making, { recursive: true });
    for (const [name, body] of files) await writeFile(join(making, name), body);
    await rename(making, place);
    for (const old of await readdir(cacheFolder))
      if (/^dashboard-[0-9a-f]{32}$/.test(old) && join(cacheFolder, old) !== place)
        await rm(join(cacheFolder, old), { recursive: true, force: true });
  } catch {
    // The disk is full, or the folder cannot be written: the next start builds again.
    await rm(making, { recursive: true, force: true }).catch(() => undefined);
  }
}
