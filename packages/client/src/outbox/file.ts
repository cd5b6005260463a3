import { readFile, rename, writeFile } from 'node:fs/promises';
import { keyValueStorage } from './key-value.ts';
import type { Storage } from './storage.ts';

/**
 * For Node: one JSON file, replaced as a whole, so that a crash leaves the old or the new one. Only one process may
 * use a file.
 */
export function fileStorage(path: string): Storage {
  return keyValueStorage({
    getItem: async () => {
      try {
        return await readFile(path, 'utf8');
      } catch {
        return null;
      }
    },
    setItem: async (_key, value) => {
      await writeFile(`${path}.tmp`, value, { mode: 0o600 });
      await rename(`${path}.tmp`, path);
    },
  });
}
