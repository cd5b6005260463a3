import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { outputs } from './outputs.ts';

/** `npm run generate` writes the files derived from the tables; `--check` only names those that are stale. */
const root = join(import.meta.dirname, '../../../..');
const check = process.argv.includes('--check');

const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};

const stale = Object.entries(outputs()).filter(([path, text]) => read(join(root, path)) !== text);
for (const [path, text] of stale) {
  if (check) {
    console.error(`stale: ${path} (run npm run generate)`);
  } else {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    console.log(`wrote ${path}`);
  }
}
if (check && stale.length > 0) process.exitCode = 1;
