import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inherited } from '../support/service.ts';

/** The commands of the README, as people type them. */

export const checkout = fileURLToPath(new URL('../../../../', import.meta.url));

export interface Started {
  /** Of `npm start` itself, which is the leader of a process group of its own. */
  process: ChildProcess;
  output(): string;
  stdout(): string;
  /** Resolves with the address that the service prints when it is ready. */
  ready: Promise<string>;
  exited: Promise<number | string | null>;
}

export interface Command {
  env: Record<string, string>;
  cwd?: string;
  /** Put before the command: another user, another view of the files. */
  prefix?: string[];
}

export function run(command: string[], { env, cwd = checkout, prefix = [] }: Command): Started {
  const [file = '', ...args] = [...prefix, ...command];
  const child = spawn(file, args, {
    cwd,
    env: {
      ...inherited,
      HOME: process.env['HOME'] ?? '/',
      npm_config_update_notifier: 'false',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string | null);
  const ready = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        const address = /ready at (http:\/\/\S+)/.exec(output)?.[1];
        if (address) resolve(address);
      });
    void exited.then((code) => reject(new Error(`ended with ${code}:\n${output}`)));
  });
  ready.catch(() => undefined);
  return { process: child, output: () => output, stdout: () => stdout, ready, exited };
}

/** Without media, whose worker may have to be built first; test/calls starts it. */
const defaults = { PORT: '0', CHAT_LOG_LEVEL: 'warn', CHAT_ROLES: 'api,gateway,worker' };
export const npmStart = (command: Command): Started =>
  run(['npm', 'start'], { ...command, env: { ...defaults, ...command.env } });
/** What `npm start` runs, without the second that npm takes. */
export const start = (command: Command): Started =>
  run([process.execPath, 'packages/server/src/main.ts'], {
    ...command,
    env: { ...defaults, ...command.env },
  });

/** The process that the embedded PostgreSQL of this data directory says it is. */
export const postmasterPid = async (dataDir: string): Promise<number> =>
  Number.parseInt(await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10);

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Looks again until it holds; the test's own time limit ends a wait in vain. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(20);
}

/** A port that nobody has now, below the range that the system gives out by itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ]).catch(() => false);
    if (!free) continue;
    const found = (server.address() as AddressInfo).port;
    server.close();
    await once(server, 'close');
    return found;
  }
}
