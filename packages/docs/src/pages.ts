import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { answerWith, createLoader } from '@parley/pages';
import type { Answer } from '@parley/pages';
import { firstScript } from './first-script.ts';

/** Serves the documentation under /docs. */

const path = '/docs';
const scriptHash = createHash('sha256').update(firstScript).digest('base64');

/** Only our own files, and calls of this service: no other network, no embedding. */
const policy = [
  "default-src 'none'",
  "style-src 'self'",
  'img-src data:',
  "font-src 'self'",
  `script-src 'self' 'sha256-${scriptHash}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const load = createLoader({
  name: 'docs',
  builder: new URL('./build/build.ts', import.meta.url),
  sources: [
    'docs/**/*.md',
    'packages/docs/{src,browser}/**/*.{ts,css}',
    'packages/protocol/{src,generated}/**/*.{ts,json}',
    'packages/{client,react,server-sdk}/src/**/*.{ts,tsx}',
    'packages/{client,react,server-sdk}/package.json',
    'packages/react/src/tokens.css',
  ],
  prebuilt: new URL('../prebuilt.bin', import.meta.url),
});

export const docsApp = {
  path,
  /** @param asked the path of the address, at or below `path`. */
  answer: async (asked: string, acceptEncoding: string): Promise<Answer> => {
    const files = await load();
    const below = posix.normalize(asked.slice(path.length)).replaceAll(/^[/.]+|\/$/g, '');
    const isAsset = below.startsWith('assets/');
    const found = isAsset ? below : posix.join(below, 'index.html');
    const name = files.has(found) ? found : '404.html';
    const answer = answerWith(name, files.get(name), acceptEncoding, {
      ...(isAsset && name === found ? {} : { 'cache-control': 'public, max-age=300' }),
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
    });
    return { ...answer, status: name === found ? 200 : 404 };
  },
};
