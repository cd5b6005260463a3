import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { BuildOptions } from 'esbuild';

/**
 * The playground's files. Scripts are bundled from source at the first request and then kept; the npm package of the server
 * has them finished in place of the sources.
 */

interface Page {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
  elsewhere?: Page['body'];
}

const file = (name: string): URL => new URL(`../browser/${name}`, import.meta.url);

/**
 * Allows our own script and style, pictures from wherever uploads are stored, and connections to this service and its
 * storage.
 */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob: https: http:; connect-src *; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

export const buildOptions = (name: string) =>
  ({
    entryPoints: [fileURLToPath(file(`${name}.ts`))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  }) satisfies BuildOptions;

async function bundle(name: string): Promise<string> {
  const packaged = await readFile(new URL(`../prebuilt/${name}.js`, import.meta.url), 'utf8').catch(
    () => null,
  );
  if (packaged !== null) return packaged;
  const { build } = await import('esbuild');
  const result = await build(buildOptions(name));
  return result.outputFiles[0]!.text;
}

/** @param environment the development environment that visitors join: those on this machine, or others. */
export function playgroundPages(
  environment: (isLocal: boolean) => Promise<string | 'only here' | null>,
): Page[] {
  const scripts = new Map<string, Promise<string>>();
  const page = (path: string, contentType: string, body: Page['body']): Page => ({
    path,
    contentType,
    headers,
    body,
  });
  const html = (path: string, name: string): Page => {
    const shown = async (isLocal: boolean): Promise<string> => {
      const id = await environment(isLocal);
      if (id === null) return readFile(file('closed.html'), 'utf8');
      if (id === 'only here') return readFile(file('elsewhere.html'), 'utf8');
      return (await readFile(file(name), 'utf8')).replaceAll('@environment@', id);
    };
    const type = 'text/html; charset=utf-8';
    return { ...page(path, type, () => shown(true)), elsewhere: () => shown(false) };
  };
  const script = (name: string): Page =>
    page(`/playground/${name}.js`, 'text/javascript; charset=utf-8', () => {
      const made = scripts.get(name) ?? bundle(name);
      scripts.set(name, made);
      made.catch(() => scripts.delete(name));
      return made;
    });
  return [
    html('/', 'index.html'),
    html('/connection-test', 'connection-test.html'),
    page('/playground/style.css', 'text/css; charset=utf-8', () => readFile(file('style.css'))),
    script('main'),
    script('connection-test'),
  ];
}
