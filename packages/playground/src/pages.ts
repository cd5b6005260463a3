import { readFile, readdir } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { BuildOptions } from 'esbuild';

/**
 * The demo at `/` and the connection test. Scripts and styles are bundled from source at the first request and then kept;
 * the npm package of the server has them finished in place of the sources.
 */

interface Page {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
  elsewhere?: Page['body'];
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

interface Asset {
  contentType: string;
  /** What is compressed already has one form. */
  bodies: { identity: Buffer; br?: Buffer; gzip?: Buffer };
}

type Assets = ReadonlyMap<string, Asset>;

const path = '/playground';
const file = (name: string): URL => new URL(`../browser/${name}`, import.meta.url);
const prebuilt = new URL('../prebuilt/', import.meta.url);

/**
 * Allows our own scripts, styles and fonts, pictures from wherever uploads are stored, and connections to this service
 * and its storage.
 */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob: https: http:; connect-src *; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

export const buildOptions = {
  entryPoints: ['main', 'connection-test'].map((name) => fileURLToPath(file(`${name}.tsx`))),
  bundle: true,
  minify: true,
  splitting: true,
  format: 'esm' as const,
  target: 'es2022',
  jsx: 'automatic' as const,
  outdir: '/assets',
  // A name has the hash of its content, so a browser may keep it for ever.
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  loader: { '.woff2': 'file' as const },
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none' as const,
  write: false as const,
  logLevel: 'silent' as const,
} satisfies BuildOptions & { write: false };

const contentTypes: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
};
const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

async function files(): Promise<(readonly [name: string, body: Buffer])[]> {
  const packaged = await readdir(prebuilt).catch(() => null);
  if (packaged)
    return Promise.all(
      packaged.map(async (name) => [name, await readFile(new URL(name, prebuilt))] as const),
    );
  const { build } = await import('esbuild');
  const { outputFiles } = await build(buildOptions);
  return outputFiles.map((made) => [basename(made.path), Buffer.from(made.contents)] as const);
}

async function loadAssets(): Promise<Assets> {
  const all = (await files()).map(async ([name, body]): Promise<[string, Asset]> => {
    const contentType = contentTypes[extname(name)]!;
    if (name.endsWith('.woff2')) return [name, { contentType, bodies: { identity: body } }];
    const [br, gzipped] = await Promise.all([
      toBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
      toGzip(body, { level: 9 }),
    ]);
    return [name, { contentType, bodies: { identity: body, br, gzip: gzipped } }];
  });
  return new Map(await Promise.all(all));
}

/** @param environment the development environment that visitors join: those on this machine, or others. */
export function createPlayground(environment: (isLocal: boolean) => Promise<string | 'only here' | null>) {
  let loading: Promise<Assets> | undefined;
  const load = (): Promise<Assets> => {
    loading ??= loadAssets();
    loading.catch(() => (loading = undefined)); // The next request tries again.
    return loading;
  };
  /** The style, the font that every page shows, and the script. */
  const head = async (entry: string, scripted: boolean): Promise<string> => {
    const names = [...(await load()).keys()];
    const of = (pattern: RegExp): string => `${path}/${names.find((name) => pattern.test(name)) ?? ''}`;
    const font = of(/^geist-latin-wght-normal-.*\.woff2$/);
    return [
      `<link rel="preload" as="font" type="font/woff2" href="${font}" crossorigin>`,
      `<link rel="stylesheet" href="${of(new RegExp(`^${entry}-\\w+\\.css$`))}">`,
      ...(scripted
        ? [`<script type="module" src="${of(new RegExp(`^${entry}-\\w+\\.js$`))}"></script>`]
        : []),
    ].join('\n    ');
  };
  const html = (at: string, entry: string, name: string): Page => {
    const shown = async (isLocal: boolean): Promise<string> => {
      const id = await environment(isLocal);
      const page = id === null ? 'closed.html' : id === 'only here' ? 'elsewhere.html' : name;
      const text = await readFile(file(page), 'utf8');
      return text
        .replace('<!-- @assets@ -->', await head(entry, page === name))
        .replaceAll('@environment@', id ?? '');
    };
    const contentType = 'text/html; charset=utf-8';
    return { path: at, contentType, headers, body: () => shown(true), elsewhere: () => shown(false) };
  };
  const answer = async (asked: string, acceptEncoding: string): Promise<Answer> => {
    const asset = (await load()).get(asked.slice(path.length + 1));
    if (!asset) return { status: 404, headers: {}, body: '' };
    const encoding = (['br', 'gzip'] as const).find(
      (name) => asset.bodies[name] && new RegExp(`\\b${name}\\b`).test(acceptEncoding),
    );
    return {
      status: 200,
      headers: {
        'content-type': asset.contentType,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'accept-encoding',
        ...(encoding ? { 'content-encoding': encoding } : {}),
      },
      body: (encoding && asset.bodies[encoding]) ?? asset.bodies.identity,
    };
  };
  return {
    pages: [
      html('/', 'main', 'index.html'),
      html('/connection-test', 'connection-test', 'connection-test.html'),
    ],
    app: { path, answer },
  };
}
