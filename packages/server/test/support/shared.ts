import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Where the files of one run of `npm test` share what takes long to make. */
const shared = process.env['TEST_SHARED'];

/** Copies a directory that is made once for all files of a run; false where it is not there, and has to be made here. */
export async function copyShared(
  name: string,
  to: string,
  make: (directory: string) => Promise<void>,
): Promise<boolean> {
  if (!shared) return false;
  const made = join(shared, name);
  if (!existsSync(made)) {
    const making = join(shared, `${name}.making`);
    try {
      await mkdir(making);
    } catch {
      return false; // another process is at it
    }
    await make(making);
    await rename(making, made);
  }
  // With the owners of the files: PostgreSQL is not root.
  await promisify(execFile)('cp', ['-a', existsSync(to) ? `${made}/.` : made, to]);
  return true;
}
