import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { glob, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { checkout } from '../../../server/test/start/npm-start.ts';

/** The packages as they are published, and projects that install them. */

export interface Tarballs {
  client: string;
  sdk: string;
  react: string;
  server: string;
  worker: string;
  all: string[];
}

export const react19 = ['react@19.3.1', 'react-dom@19.3.1'];

const cache = join(checkout, 'node_modules/.cache/parley');

/** `npm run build`, once for the same sources: it takes a minute. */
export async function tarballs(): Promise<Tarballs> {
  const place = join(cache, `packages-${await sourceHash()}`);
  const made = await readdir(place).catch(() => null);
  const names = made ?? (await make(place));
  const named = (part: string): string => {
    const name = names.find(
      (one) => one.startsWith(`parley-${part}-`) && /^\d/.test(one.slice(part.length + 8)),
    );
    if (name === undefined) throw new Error(`npm run build made no package ${part}, but ${names.join(', ')}`);
    return join(place, name);
  };
  return {
    client: named('client'),
    sdk: named('server-sdk'),
    react: named('react'),
    server: named('server'),
    worker: named(`media-worker-${process.platform}-${process.arch}`),
    all: names.map((name) => join(place, name)),
  };
}

async function make(place: string): Promise<string[]> {
  await mkdir(cache, { recursive: true });
  for (const old of await readdir(cache))
    if (old.startsWith('packages-')) await rm(join(cache, old), { recursive: true, force: true });
  const making = await mkdtemp(`${place}.`);
  await run('npm', ['run', 'build', '--', '--out', making], checkout);
  await rename(making, place);
  return readdir(place);
}

async function sourceHash(): Promise<string> {
  const hash = createHash('sha256');
  const sources: string[] = [];
  const pattern =
    '{package-lock.json,LICENSE,docs/*.md,scripts/build/*,packages/*/{package.json,README.md,schema.sql,{src,browser,generated,migrations,media}/**}}';
  for await (const entry of glob(pattern, { cwd: checkout, withFileTypes: true }))
    if (entry.isFile()) sources.push(join(entry.parentPath, entry.name));
  for (const name of sources.sort()) hash.update(`\0${name}\0`).update(await readFile(name));
  return hash.digest('hex').slice(0, 32);
}

/** What a shell of a new user has: npm tells programs that it starts about the project that it runs in, and Node about its test run. */
const ofTheRun = /^(npm_(?!config_)|npm_config_(local|global)_prefix$|INIT_CWD$|NODE_TEST)/i;
const bare = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTheRun.test(name)));
export const shell: Record<string, string> = {
  ...(bare as Record<string, string>),
  PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
};

/** Runs a program to its end. Fails with all that it said. */
export async function run(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  try {
    const options = { cwd, env: { ...shell, ...env }, maxBuffer: 64 * 1024 * 1024 };
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${basename(program)} ${args.join(' ')}\n${stdout ?? ''}\n${stderr ?? ''}`, {
      cause: error,
    });
  }
}

/** An empty project, and what is installed into it. */
export async function project(folder: string, packages: string[]): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await run('npm', ['install', ...quiet, ...packages], folder);
  return folder;
}

/** The names of all packages in it. */
export const installed = async (folder: string): Promise<string[]> => {
  const lock = await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: Record<string, unknown> };
  return Object.keys(packages)
    .map((path) => path.replace(/^.*node_modules\//, ''))
    .sort();
};
