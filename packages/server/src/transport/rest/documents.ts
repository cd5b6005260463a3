import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from './options.ts';

/** The documents that the API is described by, for tools; all public. */

const resolve = createRequire(import.meta.url).resolve;
const headers = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'public, max-age=300',
  // Browser-based tools may read them; they contain nothing secret.
  'access-control-allow-origin': '*',
};

export function documentPages(): Page[] {
  return ['openapi.json', 'asyncapi.json'].map((name) => ({
    path: `/${name}`,
    contentType: 'application/json',
    headers,
    body: () => readFile(resolve(`@parley/protocol/generated/${name}`)),
  }));
}
