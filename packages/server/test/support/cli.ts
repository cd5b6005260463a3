import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Answer } from './api.ts';
import { inherited } from './service.ts';
import type { Service } from './service.ts';

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const run = promisify(execFile);

/** `npm run parley -- … --json` on the service's store, while it runs. */
export async function parley(service: Pick<Service, 'env'>, ...args: string[]): Promise<Answer['body']> {
  const { stdout } = await run(process.execPath, [cli, ...args, '--json'], {
    env: { ...inherited, ...service.env },
  });
  return JSON.parse(stdout);
}
