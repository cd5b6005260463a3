import { createHash } from 'node:crypto';
import { readlink, stat, symlink, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CountsByKey } from '../flow/counts-by-key.ts';

/**
 * Bounds transfers of managed files: how many run at once, how slow one may be, and only one upload of an object at a
 * time.
 */

export interface Slowest {
  /** A transfer that moves fewer than `bytes` within `ms` milliseconds, and is not at its end, is cut off. */
  bytes: number;
  ms: number;
}
export const slowest: Slowest = { bytes: 64 * 1024, ms: 20_000 };

/** How many uploads and downloads run at once in one process, of one environment and of all. */
const atOnce = {
  put: { environment: 100, all: 400 },
  get: { environment: 1_000, all: 4_000 },
} as const;

export class Transfers {
  readonly #running = new CountsByKey<string>();

  /**
   * The key of an object begins with its environment. Returns the function that ends the transfer, or null if too
   * many run.
   */
  begin(op: keyof typeof atOnce, key: string): (() => void) | null {
    const [own, all] = [`${op} ${key.split('/', 1)[0]}`, op];
    if (this.#running.of(own) >= atOnce[op].environment || this.#running.of(all) >= atOnce[op].all)
      return null;
    for (const name of [own, all]) this.#running.add(name, 1);
    return () => {
      for (const name of [own, all]) this.#running.add(name, -1);
    };
  }
}

export class TooSlow extends Error {
  override name = 'TooSlow';
}

/** Counts moved bytes; `signal` aborts with TooSlow. The caller must call `stop`. */
export function pacemaker(least: Slowest): { signal: AbortSignal; moved(bytes: number): void; stop(): void } {
  const controller = new AbortController();
  let bytes = 0;
  const timer = setInterval(() => {
    if (bytes < least.bytes) controller.abort(new TooSlow());
    bytes = 0;
  }, least.ms);
  return {
    signal: controller.signal,
    moved: (more) => {
      bytes += more;
    },
    stop: () => clearInterval(timer),
  };
}

/**
 * Allows only one upload of an object at a time, over all processes that share the directory: a symbolic link named
 * after the key points to the file being written. A link whose file has not grown for a while was left behind by a
 * crash.
 */
export async function lockUpload(
  directory: string,
  key: string,
  file: string,
  least: Slowest,
  now: () => Date,
): Promise<(() => Promise<void>) | null> {
  const lock = join(directory, `${createHash('sha256').update(key).digest('hex')}.lock`);
  const target = basename(file);
  for (let tries = 0; tries < 2; tries += 1) {
    try {
      await symlink(target, lock);
      return async () => {
        if ((await readlink(lock).catch(() => '')) === target) await unlink(lock).catch(() => undefined);
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const other = await stat(lock).catch(() => null);
    if (other && now().getTime() - other.mtimeMs < 2 * least.ms) return null;
    await unlink(lock).catch(() => undefined);
  }
  return null;
}
