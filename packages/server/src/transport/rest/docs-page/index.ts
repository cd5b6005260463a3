import { readFile } from 'node:fs/promises';
import { readGenerated } from './documents.ts';
import type { AsyncApi, OpenApi } from './documents.ts';
import { markdown } from './markdown.ts';
import { page } from './page.ts';
import type { Guide } from './page.ts';

export interface DocsRoute {
  path: string;
  contentType: string;
  headers: Record<string, string>;
  body: () => Promise<Buffer | string>;
}

/** Only our own stylesheet and script, which calls this service alone: no other network, no embedding. */
const contentSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src data:; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Reads and renders at the first request and keeps the result, because the files never change while the process runs. */
const kept = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
};

/** The pages of docs/ that callers of the API need. */
const guides = (): Promise<Guide[]> =>
  Promise.all(
    ['tokens', 'rate-limits', 'upload-types', 'plans'].map(async (name) => {
      const source = await readFile(new URL(`../../../../../../docs/${name}.md`, import.meta.url), 'utf8');
      return { title: /^# (.*)$/m.exec(source)?.[1] ?? name, body: markdown(source) };
    }),
  );

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
  /** Browser-based tools may read the documents, which contain nothing secret. */
  const shared = { ...headers, 'access-control-allow-origin': '*' };
  return [
    {
      path: '/docs',
      contentType: 'text/html; charset=utf-8',
      headers,
      body: kept(async () =>
        page(
          JSON.parse(await openapi()) as OpenApi,
          JSON.parse(await asyncapi()) as AsyncApi,
          await guides(),
        ),
      ),
    },
    {
      path: '/docs/style.css',
      contentType: 'text/css; charset=utf-8',
      headers,
      body: kept(() => readFile(new URL('style.css', import.meta.url))),
    },
    {
      path: '/docs/script.js',
      contentType: 'text/javascript; charset=utf-8',
      headers,
      body: kept(() => readFile(new URL('script.js', import.meta.url))),
    },
    { path: '/openapi.json', contentType: 'application/json', headers: shared, body: openapi },
    { path: '/asyncapi.json', contentType: 'application/json', headers: shared, body: asyncapi },
  ];
}
