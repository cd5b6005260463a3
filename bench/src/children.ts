import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';

/** Child processes. Whatever happens to us, they end with us. */

const running = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of running) kill(child, 'SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

export interface Child {
  process: ChildProcess;
  pid: number;
  /** The last lines it wrote. */
  tail(): string;
  /** SIGTERM, and SIGKILL to its group when that does not help in time. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (signal === 'SIGKILL') process.kill(-child.pid!, signal);
    else child.kill(signal);
  } catch {
    // it ended a moment ago
  }
}

export function track(child: ChildProcess, graceMs = 20_000): Child {
  running.add(child);
  let output = '';
  const exited = once(child, 'exit').finally(() => running.delete(child));
  exited.catch(() => undefined);
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)));
  return {
    process: child,
    pid: child.pid!,
    tail: () => output,
    async stop(signal = 'SIGTERM') {
      if (!running.has(child)) return;
      kill(child, signal);
      const timer = setTimeout(() => kill(child, 'SIGKILL'), graceMs);
      await exited.catch(() => undefined);
      clearTimeout(timer);
      kill(child, 'SIGKILL'); // what it left in its group
    },
  };
}

/** Starts a program in a group of its own. */
export function start(program: string, args: string[], options: SpawnOptions = {}): Child {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...options });
  child.on('error', () => undefined);
  return track(child);
}

/** Resolves with the match of the first line on stdout that fits. */
export function lineOf(child: Child, pattern: RegExp, timeoutMs = 60_000): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) =>
      reject(new Error(`${basename(child.process.spawnfile)} ${why}:\n${child.tail()}`));
    const timer = setTimeout(() => fail('did not get ready in time'), timeoutMs);
    createInterface({ input: child.process.stdout! }).on('line', (line) => {
      const match = pattern.exec(line);
      if (!match) return;
      clearTimeout(timer);
      resolve(match);
    });
    child.process.once('exit', (code) => {
      clearTimeout(timer);
      fail(`ended with ${code}`);
    });
    child.process.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}
