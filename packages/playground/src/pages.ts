import { readFile } from 'node:fs/promises';
import { answerWith, createLoader } from '@parley/pages';
import type { Answer } from '@parley/pages';

/** The demo at `/` and the connection test. */

interface Page {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
  elsewhere?: Page['body'];
}

const path = '/playground';
const file = (name: string): URL => new URL(`../browser/${name}`, import.meta.url);
const load = createLoader({
  name: 'playground',
  builder: new URL('./build.ts', import.meta.url),
  sources: [
    'packages/playground/{src,browser}/**/*.{ts,tsx,css}',
    'packages/{client,react,protocol}/src/**/*.{ts,tsx,css}',
  ],
  prebuilt: new URL('../prebuilt.bin', import.meta.url),
});

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

/** @param environment the development environment that visitors join: those on this machine, or others. */
export function createPlayground(environment: (isLocal: boolean) => Promise<string | 'only here' | null>) {
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
    const name = asked.slice(path.length + 1);
    return answerWith(name, (await load()).get(name), acceptEncoding);
  };
  return {
    pages: [
      html('/', 'main', 'index.html'),
      html('/connection-test', 'connection-test', 'connection-test.html'),
    ],
    app: { path, answer },
  };
}
