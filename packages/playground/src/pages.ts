import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The playground's files. Scripts are bundled from source at the first request and then kept. */

interface Page {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
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

async function bundle(entry: string): Promise<string> {
  const result = await build({
    entryPoints: [fileURLToPath(file(entry))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  });
  return result.outputFiles[0]!.text;
}

/** @param environment the development environment that visitors join, or null if there is none. */
export function playgroundPages(environment: () => Promise<string | null>): Page[] {
  const scripts = new Map<string, Promise<string>>();
  const page = (path: string, contentType: string, body: Page['body']): Page => ({
    path,
    contentType,
    headers,
    body,
  });
  const html = (path: string, name: string): Page =>
    page(path, 'text/html; charset=utf-8', async () => {
      const id = await environment();
      const text = await readFile(file(id === null ? 'closed.html' : name), 'utf8');
      return text.replaceAll('@environment@', id ?? '');
    });
  const script = (name: string): Page =>
    page(`/playground/${name}.js`, 'text/javascript; charset=utf-8', () => {
      const made = scripts.get(name) ?? bundle(`${name}.ts`);
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
