import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

test('the first page has at most 250,000 bytes, gzipped', async () => {
  // It exits with 1 where it has more, and says how many.
  await promisify(execFile)(process.execPath, [
    fileURLToPath(new URL('../../../scripts/dashboard-size.ts', import.meta.url)),
  ]);
});
