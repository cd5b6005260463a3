import { spawnSync } from 'node:child_process';
import { readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Signals for a fast shutdown, an immediate shutdown (with recovery at the next start) and a kill, each with the
 * milliseconds it gets.
 */
export const SHUTDOWN_STEPS = [
  ['SIGINT', 15_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
] as const;

const POLL_MS = 20;

/**
 * Ends a server that a killed predecessor left behind, and makes its `postmaster.pid` harmless. The caller holds the
 * lock of the data directory, so a server that runs there belongs to nobody.
 */
export async function clearOrphan(pgdata: string, log: (line: string) => void): Promise<void> {
  const file = join(pgdata, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const pid = Math.abs(Number.parseInt(text, 10));
  if (pid > 0 && (await isPostmaster(pid, pgdata))) {
    log(`stopping the PostgreSQL server that an earlier run left behind (process ${pid})`);
    if (!(await end(pid, pgdata)))
      throw new Error(`the PostgreSQL server of an earlier run (process ${pid}) does not end`);
  }
  const left = await readFile(file, 'utf8').catch(() => undefined);
  if (left === undefined) return;
  // The file names a dead process, or another one that has its pid by now. The file is not just removed, because a
  // new server checks by its other lines that no process of the old one uses its shared memory. It gets our pid,
  // because a server ignores its parent's.
  if (/^-?[1-9]\d*\n/.test(left)) await writeFile(file, left.replace(/^-?\d+/, `${process.pid}`));
  else await rm(file, { force: true });
}

async function end(pid: number, pgdata: string): Promise<boolean> {
  for (const [signal, milliseconds] of SHUTDOWN_STEPS) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    for (let left = milliseconds / POLL_MS; left > 0; left--) {
      if (!(await isPostmaster(pid, pgdata))) return true;
      await delay(POLL_MS);
    }
  }
  return false;
}

/** True only for a live server of this directory, not for a zombie or another process with the same pid. */
async function isPostmaster(pid: number, pgdata: string): Promise<boolean> {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'command=', '-p', `${pid}`], { encoding: 'utf8' });
    return /postgres/.test(stdout) && stdout.includes(pgdata);
  }
  try {
    const name = await readFile(`/proc/${pid}/comm`, 'utf8');
    return name === 'postgres\n' && (await readlink(`/proc/${pid}/cwd`)) === pgdata;
  } catch {
    return false;
  }
}
