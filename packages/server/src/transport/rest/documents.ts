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
  return ['openapi.json', 'asyncapi.json'].map((name) => {
    let read: Promise<string> | undefined;
    return {
      path: `/${name}`,
      contentType: 'application/json',
      headers,
      // Kept: the files never change while the process runs.
      body: () => {
        read ??= readFile(resolve(`@parley/protocol/generated/${name}`), 'utf8');
        read.catch(() => (read = undefined));
        return read;
      },
    };
  });
}
