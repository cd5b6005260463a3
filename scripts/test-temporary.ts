// Where the tests of one run put their stores, profiles of browsers and files.
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** A lane takes about half a gigabyte, and the long tests take more. */
const NEEDED = 8 * 2 ** 30;

/**
 * Makes the directory, in memory where there is plenty: a commit waits for the disk otherwise, and most tests are a row of
 * commits. Everybody may write there: PostgreSQL does not run as root.
 */
export function makeTemporary(): string {
  const base = hasRoom() ? MEMORY : tmpdir();
  if (base === MEMORY) removeAbandoned();
  const made = mkdtempSync(join(base, `parley-${process.pid}-`));
  chmodSync(made, 0o1777);
  return made;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= NEEDED && freemem() >= NEEDED;
  } catch {
    return false;
  }
}

/** What a run that was killed left there takes memory until somebody removes it. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = /^parley-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
