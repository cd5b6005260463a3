import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runGroup } from './run-group.ts';

/**
 * Where the C++ worker of mediasoup comes from. `npm ci` brings its sources and no binary. The binary is looked for
 * in MEDIASOUP_WORKER_BIN, in the package for this platform if that is installed (`npm run media:package` makes it), then in a
 * cache outside of node_modules (by version, C library, architecture and recipe), then downloaded if its checksum is given, and finally built from the sources with Debian's packages, which takes
 * some minutes.
 */

export interface Progress {
  /** What is being done, in words. */
  text: string;
  /** Estimated milliseconds that remain. */
  leftMs: number;
}

export interface WorkerBinaryOptions {
  env?: NodeJS.ProcessEnv;
  /** The checksum of the archive that may be downloaded. */
  sha256?: string | undefined;
  /** The URL of mediasoup's releases, without a slash at its end. */
  releases?: string | undefined;
  progress?: (progress: Progress) => void;
  /** Ends a running build. */
  signal?: AbortSignal;
  recipe?: { script: string; packages: string };
  /** The file from which the package with the finished binary is resolved. */
  from?: string;
}

export const workerPackage = `@parley/media-worker-${process.platform}-${process.arch}`;

const run = promisify(execFile);
const releases = 'https://github.com/versatica/mediasoup/releases/download';
/** Milliseconds that a build takes on two idle cores, with room for a busy machine. */
const buildMs = 240_000;
/** The build script, and the Debian packages that it needs. */
const ownRecipe = {
  script: fileURLToPath(new URL('../../../media/build-worker.sh', import.meta.url)),
  packages: 'g++ flatbuffers-compiler libflatbuffers-dev libssl-dev libuv1-dev libsrtp2-dev',
};

export async function findWorkerBinary(options: WorkerBinaryOptions = {}): Promise<string> {
  const { env = process.env, progress = () => undefined, recipe = ownRecipe } = options;
  const given = env['MEDIASOUP_WORKER_BIN'];
  if (given) return given;
  const source = mediasoupFolder();
  const version = await mediasoupVersion(source);
  const installed = await packagedBinary(options.from ?? import.meta.url, version);
  if (installed !== undefined) return installed;
  const binary = await cachedBinary(env, recipe.script, source);
  if (await fits(binary, version)) return binary;
  await mkdir(dirname(binary), { recursive: true });
  if (options.sha256) {
    const from = `${options.releases ?? releases}/${version}`;
    if (await download(source, version, from, options.sha256, binary, progress)) return binary;
  }
  await build(source, binary, recipe, options.signal, progress);
  if (!(await fits(binary, version))) throw new Error(`the media worker that was built is not ${version}`);
  return binary;
}

/** The binary that is there without a download and without a build; undefined if there is none. */
export async function builtWorkerBinary(env: NodeJS.ProcessEnv = process.env): Promise<string | undefined> {
  const given = env['MEDIASOUP_WORKER_BIN'];
  if (given) return given;
  const source = mediasoupFolder();
  const version = await mediasoupVersion(source);
  const binary =
    (await packagedBinary(import.meta.url, version)) ?? (await cachedBinary(env, ownRecipe.script, source));
  return (await fits(binary, version)) ? binary : undefined;
}

async function mediasoupVersion(source: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { version: string };
  return version;
}

/** Where a binary that was built or downloaded is kept. */
async function cachedBinary(env: NodeJS.ProcessEnv, script: string, source: string): Promise<string> {
  const { stdout } = await run('bash', [script, '--key', source]).catch((error: Error) => {
    throw new Error(`a media worker cannot be built here (${error.message}): set MEDIASOUP_WORKER_BIN`);
  });
  return join(cacheFolder(env), stdout.trim(), 'mediasoup-worker');
}

/** The exports of mediasoup do not name its package.json; its entry file is two folders below. */
export function mediasoupFolder(): string {
  const entry = createRequire(import.meta.url).resolve('mediasoup');
  return entry.slice(0, entry.lastIndexOf('mediasoup') + 'mediasoup'.length);
}

/** The binary of the installed package; undefined if there is none, or if it does not start on this machine. */
async function packagedBinary(from: string, version: string): Promise<string | undefined> {
  let binary: string;
  try {
    binary = createRequire(from).resolve(`${workerPackage}/mediasoup-worker`);
  } catch {
    return undefined;
  }
  if (!(await fits(binary, version))) return undefined;
  // Without MEDIASOUP_VERSION the worker ends with this code; where a library is missing, with another.
  const code = await run(binary, { env: {} }).then(
    () => 0,
    (error: { code?: unknown }) => error.code,
  );
  return code === 41 ? binary : undefined;
}

const cacheFolder = (env: NodeJS.ProcessEnv): string =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'parley', 'media');

/** The worker itself does not compare versions: a binary of another version starts, and fails later. */
async function fits(binary: string, version: string): Promise<boolean> {
  try {
    const made = JSON.parse(await readFile(`${binary}.json`, 'utf8')) as { mediasoup?: string };
    await access(binary);
    return made.mediasoup === version;
  } catch {
    return false;
  }
}

/** Downloads the binary that mediasoup publishes. It has no published checksum, so the operator names the one to trust. */
async function download(
  source: string,
  version: string,
  from: string,
  checksum: string,
  binary: string,
  progress: (progress: Progress) => void,
): Promise<boolean> {
  progress({ text: 'downloading the media worker', leftMs: 30_000 });
  try {
    const scripts = join(source, 'npm-scripts.mjs');
    const { stdout } = await run(process.execPath, [scripts, 'worker:prebuild-name'], { cwd: source });
    const name = /mediasoup-worker-[\w.-]+\.tgz/.exec(stdout)?.[0];
    if (!name) throw new Error('mediasoup does not say what its archive is called');
    const url = `${from}/${name}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
    const archive = Buffer.from(await answer.arrayBuffer());
    const sum = createHash('sha256').update(archive).digest('hex');
    if (!answer.ok || sum !== checksum) throw new Error(`${url}: ${answer.status}, sha256 ${sum}`);
    const packed = `${binary}.tgz`;
    await writeFile(packed, archive);
    await run('tar', ['-xzf', packed, '-C', dirname(binary)]);
    await rm(packed);
    await writeFile(`${binary}.json.new`, JSON.stringify({ mediasoup: version, sha256: sum }));
    await rename(`${binary}.json.new`, `${binary}.json`);
    return true;
  } catch (error) {
    progress({
      text: `the download failed (${(error as Error).message}); building instead`,
      leftMs: buildMs,
    });
    return false;
  }
}

async function build(
  source: string,
  binary: string,
  recipe: typeof ownRecipe,
  signal: AbortSignal | undefined,
  progress: (progress: Progress) => void,
): Promise<void> {
  const began = performance.now();
  const tell = (text: string): void =>
    progress({ text, leftMs: Math.max(10_000, buildMs - (performance.now() - began)) });
  tell('building the media worker from its sources, which takes some minutes');
  const install = `apt-get install -y --no-install-recommends ${recipe.packages}`;
  // If packages are interrupted while they are set up, they finish first (SIGINT), so that they stay intact.
  if (process.getuid?.() === 0 && recipe.packages !== '') {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const setUp = `apt-get update -qq; ${install}`;
    if ((await runGroup('sh', ['-c', setUp], { env, signal, ending: 'SIGINT' })) !== 0)
      tell('the packages that the build needs could not be installed; trying all the same');
  }
  let said = '';
  // Other processes that need the binary wait here, and then find it built. The build has a low priority, because the
  // chat comes first.
  const command = [`${binary}.lock`, 'nice', '-n', '15', 'bash', recipe.script, '--out', binary, source];
  const code = await runGroup('flock', command, {
    signal,
    line: (line) => {
      said = line.trim();
      tell(`building the media worker: ${said}`);
    },
  });
  if (code !== 0) throw new Error(`the media worker could not be built: ${said}. It needs: ${install}`);
}
