import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A port below the kernel's ephemeral range that nothing listens on now. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw new Error('no free port');
}

export interface Running {
  stop(): Promise<void>;
}

/** Starts a program and waits until it listens. It dies with this process. */
export async function start(command: string, args: string[], port: number, needs: string): Promise<Running> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const note = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000));
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  child.on('error', (error) => note(Buffer.from(`${error.message} (${needs})`)));
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const deadline = Date.now() + 150_000;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || child.pid === undefined || Date.now() > deadline) {
      kill();
      throw new Error(`${command} did not start: ${output}`);
    }
    await delay(50);
  }
  // It may have been somebody else who listens there, while ours found the port taken.
  await delay(200);
  if (child.exitCode !== null) throw new Error(`${command} did not stay: ${output}`);
  return {
    async stop() {
      process.removeListener('exit', kill);
      await ended(child);
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
