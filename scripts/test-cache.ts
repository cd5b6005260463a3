// What tests find on the machine, outside the checkout: programs, and what takes minutes to build or to fetch.
import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const caches = ['/var/cache/parley-tests', join(homedir(), '.cache/parley-tests')] as const;

/** Where this user can put something. */
export const cacheHere: string = process.getuid?.() === 0 ? caches[0] : caches[1];

/** Where it is; undefined if nobody put it there. Tests only look. */
export const cached = (name: string): string | undefined =>
  caches.map((cache) => join(cache, name)).find(existsSync);

export function onPath(program: string): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
