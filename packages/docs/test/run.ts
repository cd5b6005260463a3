import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../src/build/site.ts';

/** Runs the examples of the documentation as a reader would: in a folder of their own, with the packages beside them. */

export interface Ran {
  code: number;
  output: string;
}

const packages = ['client', 'server-sdk', 'react'];
const limit = 10 * 60_000;

export interface Folder {
  path: string;
  write(name: string, text: string): Promise<string>;
  run(command: string, args: string[], env: Record<string, string>): Promise<Ran>;
  remove(): Promise<void>;
}

export async function makeFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'parley-docs-'));
  await mkdir(join(path, 'node_modules/@parley'), { recursive: true });
  for (const name of packages)
    await symlink(join(root, 'packages', name), join(path, 'node_modules/@parley', name));
  return {
    path,
    async write(name, text) {
      await writeFile(join(path, name), text);
      return join(path, name);
    },
    run: (command, args, env) =>
      new Promise((done) => {
        const options = {
          cwd: path,
          env: { ...inherited(), ...env },
          timeout: limit,
          maxBuffer: 16 * 1024 * 1024,
        };
        execFile(command, args, options, (error, stdout, stderr) => {
          const code = error ? (typeof error.code === 'number' ? error.code : 1) : 0;
          done({ code, output: stdout + stderr });
        });
      }),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

const inherited = (): Record<string, string> =>
  Object.fromEntries(
    ['PATH', 'HOME', 'NODE_COMPILE_CACHE', 'GOCACHE'].map((name) => [name, process.env[name] ?? '']),
  );

/** The service is shared with other tests: the people of the examples get names that nobody else has. */
export function ownNames(): (text: string) => string {
  const own = randomUUID().slice(0, 8);
  return (text) => text.replaceAll(/\b(alice|bob|carol|dave)\b/g, (name) => `${name}-${own}`);
}

export interface Block {
  language: string;
  file: string | undefined;
  text: string;
}

export const blocksOf = (source: string): Block[] =>
  [...source.matchAll(/^```(\w*)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(([, language, file, text]) => ({
    language: language!,
    file,
    text: text!,
  }));
