import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { root } from '../src/build/site.ts';
import { blocksOf } from './run.ts';
import type { Folder } from './run.ts';

/** The programs of the guides that stay: they say where they listen. */

export interface Program {
  url: string;
  output(): string;
  /** Waits until a line of it matches. */
  said(line: RegExp): Promise<void>;
  stop(): Promise<void>;
}

export async function startProgram(
  folder: Folder,
  file: string,
  env: Record<string, string>,
): Promise<Program> {
  const child: ChildProcess = spawn(process.execPath, [file], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const waiting = new Set<() => void>();
  const heard = (text: string): void => {
    output += text;
    for (const look of waiting) look();
  };
  child.stderr!.on('data', (chunk: Buffer) => heard(chunk.toString()));
  createInterface({ input: child.stdout! }).on('line', (line) => heard(`${line}\n`));
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${file} ended:\n${output}`)));
  ended.catch(() => undefined);
  const said = async (line: RegExp): Promise<void> => {
    const matched = new Promise<void>((resolve) => {
      const look = (): void => {
        if (!line.test(output)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
    await Promise.race([matched, ended]);
  };
  await said(/listening on/);
  return {
    url: /http:\/\/127\.0\.0\.1:\d+/.exec(output)![0],
    output: () => output,
    said,
    stop: async () => {
      child.kill();
      await ended.catch(() => undefined);
    },
  };
}

/** Writes the files of a guide into the folder. */
export async function writeFiles(
  folder: Folder,
  guide: string,
  own: (text: string) => string,
): Promise<void> {
  const blocks = blocksOf(await readFile(join(root, 'docs/guides', guide), 'utf8'));
  const files = blocks.filter(({ file }) => file !== undefined);
  assert.ok(files.length > 0, guide);
  for (const { file, text } of files) await folder.write(file!, own(text));
}

/** Puts the client's file for pages without a bundler where its package has it. */
export async function buildClient(folder: Folder): Promise<void> {
  const into = join(folder.path, 'node_modules/@parley/client');
  await rm(into);
  await mkdir(join(into, 'dist'), { recursive: true });
  await build({
    entryPoints: [join(root, 'packages/client/src/index.ts')],
    outfile: join(into, 'dist/parley.min.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
  });
}
