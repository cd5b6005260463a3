import { readFile } from 'node:fs/promises';
import { readGenerated } from './documents.ts';
import type { AsyncApi, OpenApi } from './documents.ts';
import { page } from './page.ts';

export interface DocsRoute {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
}

/** Only our own stylesheet: no script, no outside network, no embedding. */
const contentSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Read and rendered at the first request, then kept: the files never change while the process runs. */
const kept = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
};

/** The API reference and the documents it is made from; all public. */
export function docsRoutes(): DocsRoute[] {
  const openapi = kept(() => readGenerated('openapi.json'));
  const asyncapi = kept(() => readGenerated('asyncapi.json'));
  const headers = {
    'content-security-policy': contentSecurityPolicy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'public, max-age=300',
  };
  /** Tools in a browser may read the documents; they hold nothing secret. */
  const shared = { ...headers, 'access-control-allow-origin': '*' };
  return [
    {
      path: '/docs',
      contentType: 'text/html; charset=utf-8',
      headers,
      body: kept(async () =>
        page(JSON.parse(await openapi()) as OpenApi, JSON.parse(await asyncapi()) as AsyncApi),
      ),
    },
    {
      path: '/docs/style.css',
      contentType: 'text/css; charset=utf-8',
      headers,
      body: kept(() => readFile(new URL('style.css', import.meta.url))),
    },
    { path: '/openapi.json', contentType: 'application/json', headers: shared, body: openapi },
    { path: '/asyncapi.json', contentType: 'application/json', headers: shared, body: asyncapi },
  ];
}
