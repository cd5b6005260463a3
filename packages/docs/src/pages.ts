import { createHash } from 'node:crypto';
import { extname, posix } from 'node:path';
import { firstScript } from './first-script.ts';
import { loadSite } from './load.ts';
import type { Files } from './load.ts';

/** Serves the documentation under /docs. */

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

const path = '/docs';
const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};
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

let site: Promise<Files> | undefined;

/** A build that failed is tried again with the next request. */
function load(): Promise<Files> {
  site ??= loadSite();
  site.catch(() => (site = undefined));
  return site;
}

export const docsApp = {
  path,
  /** @param asked the path of the address, at or below `path`. */
  answer: async (asked: string, acceptEncoding: string): Promise<Answer> => {
    const files = await load();
    const below = posix.normalize(asked.slice(path.length)).replaceAll(/^[/.]+|\/$/g, '');
    const isAsset = below.startsWith('assets/');
    const found = isAsset ? below : posix.join(below, 'index.html');
    const name = files.has(found) ? found : '404.html';
    const { bodies, etag } = files.get(name)!;
    const encoding = (['br', 'gzip'] as const).find(
      (one) => bodies[one] && new RegExp(`\\b${one}\\b(?!;q=0(\\.0*)?(,|$))`).test(acceptEncoding),
    );
    return {
      status: name === found ? 200 : 404,
      headers: {
        'content-type': contentTypes[extname(name)]!,
        'cache-control':
          isAsset && name === found ? 'public, max-age=31536000, immutable' : 'public, max-age=300',
        'content-security-policy': policy,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        // Each encoding is another representation, and has a tag of its own.
        etag: `"${etag}${encoding ? `-${encoding}` : ''}"`,
        vary: 'accept-encoding',
        ...(encoding ? { 'content-encoding': encoding } : {}),
      },
      body: (encoding && bodies[encoding]) ?? bodies.identity,
    };
  },
};
