import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runGroup } from '../run-group.ts';

/**
 * Where the C++ worker of mediasoup comes from. `npm ci` brings its sources and no binary: it is looked for in
 * MEDIASOUP_WORKER_BIN, then in a cache outside of node_modules (by version, C library, architecture and recipe), then
 * downloaded where a checksum vouches for it, and last built from the sources with Debian's packages, which takes some minutes.
 */

export interface Progress {
  /** What is being done, in words. */
  text: string;
  /** How much longer it will take, as far as one knows. */
  leftMs: number;
}

export interface WorkerBinaryOptions {
  env?: NodeJS.ProcessEnv;
  /** Of the archive that may be downloaded. */
  sha256?: string | undefined;
  progress?: (progress: Progress) => void;
  /** Ends a build that is under way. */
  signal?: AbortSignal;
}

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('../../../media/build-worker.sh', import.meta.url));
/** A build on two idle cores, with room for a busy machine. */
const buildMs = 240_000;
const buildPackages = 'g++ flatbuffers-compiler libflatbuffers-dev libssl-dev libuv1-dev libsrtp2-dev';

export async function findWorkerBinary(options: WorkerBinaryOptions = {}): Promise<string> {
  const { env = process.env, progress = () => undefined } = options;
  const given = env['MEDIASOUP_WORKER_BIN'];
  if (given) return given;
  // mediasoup names no package.json among its exports; its entry stands two folders below.
  const entry = createRequire(import.meta.url).resolve('mediasoup');
  const source = entry.slice(0, entry.lastIndexOf('mediasoup') + 'mediasoup'.length);
  const { version } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { version: string };
  const { stdout } = await run('bash', [recipe, '--key', source]).catch((error: Error) => {
    throw new Error(`a media worker cannot be built here (${error.message}): set MEDIASOUP_WORKER_BIN`);
  });
  const folder = join(cacheFolder(env), stdout.trim());
  const binary = join(folder, 'mediasoup-worker');
  if (await fits(binary, version)) return binary;
  await mkdir(folder, { recursive: true });
  if (options.sha256 && (await download(source, version, options.sha256, binary, progress))) return binary;
  await build(source, binary, options.signal, progress);
  if (!(await fits(binary, version))) throw new Error(`the media worker that was built is not ${version}`);
  return binary;
}

const cacheFolder = (env: NodeJS.ProcessEnv): string =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'parley', 'media');

/** The worker itself compares no versions: a binary of another one starts, and fails later. */
async function fits(binary: string, version: string): Promise<boolean> {
  try {
    const made = JSON.parse(await readFile(`${binary}.json`, 'utf8')) as { mediasoup?: string };
    await access(binary);
    return made.mediasoup === version;
  } catch {
    return false;
  }
}

/** One that mediasoup publishes. It comes without a checksum of its own, so the operator names the one to trust. */
async function download(
  source: string,
  version: string,
  checksum: string,
  binary: string,
  progress: (progress: Progress) => void,
): Promise<boolean> {
  progress({ text: 'downloading the media worker', leftMs: 30_000 });
  try {
    const scripts = join(source, 'npm-scripts.mjs');
    const { stdout } = await run(process.execPath, [scripts, 'worker:prebuild-name'], { cwd: source });
    const name = stdout.trim().split(/\s+/).at(-1)!;
    const url = `https://github.com/versatica/mediasoup/releases/download/${version}/${name}`;
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
  signal: AbortSignal | undefined,
  progress: (progress: Progress) => void,
): Promise<void> {
  const began = performance.now();
  const tell = (text: string): void =>
    progress({ text, leftMs: Math.max(10_000, buildMs - (performance.now() - began)) });
  tell('building the media worker from its sources, which takes some minutes');
  const install = `apt-get install -y --no-install-recommends ${buildPackages}`;
  // Whoever is interrupted while packages are being set up finishes that first (SIGINT), so that they are left whole.
  if (process.getuid?.() === 0) {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const setUp = `apt-get update -qq; ${install}`;
    if ((await runGroup('sh', ['-c', setUp], { env, signal, ending: 'SIGINT' })) !== 0)
      tell('the packages that the build needs could not be installed; trying all the same');
  }
  let said = '';
  // Others that want it wait here, and find it built. It runs beside the chat, which comes first.
  const command = [`${binary}.lock`, 'nice', '-n', '15', 'bash', recipe, '--out', binary, source];
  const code = await runGroup('flock', command, {
    signal,
    line: (line) => {
      said = line.trim();
      tell(`building the media worker: ${said}`);
    },
  });
  if (code !== 0) throw new Error(`the media worker could not be built: ${said}. It needs: ${install}`);
}
