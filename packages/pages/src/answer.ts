import { extname } from 'node:path';
import type { File } from './files.ts';

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer | string;
}

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

/** The file in the form that the browser takes. A name of an asset has the hash of its content, so it is kept for ever. */
export function answerWith(
  name: string,
  file: File | undefined,
  acceptEncoding: string,
  headers: Record<string, string> = {},
): Answer {
  if (!file) return { status: 404, headers: {}, body: '' };
  const encoding = (['br', 'gzip'] as const).find(
    (one) => file.bodies[one] && new RegExp(`\\b${one}\\b(?!;q=0(\\.0*)?(,|$))`).test(acceptEncoding),
  );
  return {
    status: 200,
    headers: {
      'content-type': contentTypes[extname(name)]!,
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      // Each encoding is a separate representation with a separate tag.
      etag: `"${file.etag}${encoding ? `-${encoding}` : ''}"`,
      vary: 'accept-encoding',
      ...(encoding ? { 'content-encoding': encoding } : {}),
      ...headers,
    },
    body: (encoding && file.bodies[encoding]) ?? file.bodies.identity,
  };
}
