import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface GroupOptions {
  env?: NodeJS.ProcessEnv;
  /** Ends the command and every process that it started. */
  signal?: AbortSignal | undefined;
  /** The signal that they get then. */
  ending?: NodeJS.Signals;
  line?: (line: string) => void;
}

/**
 * Runs a command in a process group of its own, so that it and everything it started can be ended together: when
 * `signal` aborts, and when this process exits. Resolves to the exit code (null if a signal ended it) once none of
 * its processes writes any more.
 */
export async function runGroup(
  command: string,
  args: readonly string[],
  options: GroupOptions = {},
): Promise<number | null> {
  const { env = process.env, signal, ending = 'SIGTERM', line = () => undefined } = options;
  signal?.throwIfAborted();
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, ending);
    } catch {
      // The group has ended by itself.
    }
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', line);
  signal?.addEventListener('abort', end);
  process.once('exit', end);
  try {
    return await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
  } finally {
    signal?.removeEventListener('abort', end);
    process.off('exit', end);
  }
}
