import { spawn } from 'node:child_process';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Seconds that a predecessor which was just killed may take to disappear. */
const PATIENCE_SECONDS = 3;
/** BSD and macOS lock on open; the flag is not among Node's constants. */
const O_EXLOCK = 0x20;

/**
 * Takes the kernel's lock on a file. The lock ends with this process however it ends, so there are no stale locks.
 * Returns the function that releases it. Rejects if another live process (or another call in this one) holds it.
 */
export async function lockFile(path: string): Promise<() => void> {
  const fd = process.platform === 'linux' ? await lockByUtility(path) : await lockOnOpen(path);
  if (fd === undefined) {
    const holder = readFileSync(path, 'utf8').trim();
    throw new Error(
      `the data directory is in use by another instance (process ${holder || 'unknown'}, lock ${path}): ` +
        'stop it first, or give this one another data directory.',
    );
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`, 0);
  let held = true;
  return () => {
    if (held) closeSync(fd);
    held = false;
  };
}

/** `flock` locks the open file that it inherits from us, so the lock stays ours after the utility has ended. */
async function lockByUtility(path: string): Promise<number | undefined> {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      const child = spawn('flock', ['-x', '-w', `${PATIENCE_SECONDS}`, '3'], {
        stdio: ['ignore', 'ignore', 'ignore', fd],
      });
      child.once('error', (cause) => reject(new Error('cannot run `flock`: install util-linux', { cause })));
      child.once('exit', resolve);
    });
    if (code === 0) return fd;
    if (code !== 1) throw new Error(`cannot lock ${path}: flock ended with ${code}`);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return undefined;
}

async function lockOnOpen(path: string): Promise<number | undefined> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK;
  for (let tries = PATIENCE_SECONDS * 10; tries > 0; tries--) {
    try {
      return openSync(path, flags, 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await delay(100);
    }
  }
  return undefined;
}
