import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The playground's files. The script is bundled from source at the first request and then kept. */

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

async function bundle(): Promise<string> {
  const result = await build({
    entryPoints: [fileURLToPath(file('main.ts'))],
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
  let script: Promise<string> | undefined;
  const page = (path: string, contentType: string, body: Page['body']): Page => ({
    path,
    contentType,
    headers,
    body,
  });
  return [
    page('/', 'text/html; charset=utf-8', async () => {
      const id = await environment();
      const html = await readFile(file(id === null ? 'closed.html' : 'index.html'), 'utf8');
      return html.replaceAll('@environment@', id ?? '');
    }),
    page('/playground/style.css', 'text/css; charset=utf-8', () => readFile(file('style.css'))),
    page('/playground/main.js', 'text/javascript; charset=utf-8', () => {
      script ??= bundle();
      script.catch(() => (script = undefined));
      return script;
    }),
  ];
}
