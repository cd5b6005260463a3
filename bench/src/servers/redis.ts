import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lineOf, start } from '../children.ts';

/** A Redis of Debian's that keeps nothing, on a port below the range of outgoing ones. */

const program = '/usr/bin/redis-server';
const port = 25_379;

export interface Redis {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** null: there is none on this machine. */
export async function startRedis(): Promise<Redis | null> {
  if (!existsSync(program)) return null;
  const directory = await mkdtemp(join(tmpdir(), 'parley-bench-redis-'));
  const child = start(program, [
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    directory,
  ]);
  await lineOf(child, /Ready to accept connections/);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid,
    async stop() {
      await child.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
