import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { version } from '../version.ts';
import { findWorkerBinary, mediasoupFolder, workerPackage } from './worker-binary.ts';

/**
 * `npm run media:package`: an npm package with the finished media worker for this platform, as a tarball in `dist/`. A machine that
 * has the package installed compiles nothing.
 */

const ours = fileURLToPath(new URL('../../../../../', import.meta.url));

/** The parts that are compiled into the worker, each with the file of its licence. */
const licences = (): [part: string, file: string][] => [
  ['mediasoup', join(mediasoupFolder(), 'LICENSE')],
  ['mediasoup: SCTP', join(mediasoupFolder(), 'worker/src/RTC/SCTP/LICENSE')],
  ['libwebrtc', join(mediasoupFolder(), 'worker/deps/libwebrtc/LICENSE')],
  ['libwebrtc: patents', join(mediasoupFolder(), 'worker/deps/libwebrtc/PATENTS')],
  ['flatbuffers', '/usr/share/doc/libflatbuffers-dev/copyright'],
  ['Parley', join(ours, 'LICENSE')],
];

/** @returns the path of the tarball. */
export async function packWorker(binary: string, into: string): Promise<string> {
  const stamp = JSON.parse(await readFile(`${binary}.json`, 'utf8')) as { runtimePackages: string };
  const folder = await mkdtemp(join(tmpdir(), 'parley-media-'));
  try {
    await copyFile(binary, join(folder, 'mediasoup-worker'));
    await copyFile(`${binary}.json`, join(folder, 'mediasoup-worker.json'));
    const texts = licences().map(
      async ([part, file]) => `==== ${part} ====\n\n${await readFile(file, 'utf8')}`,
    );
    await writeFile(join(folder, 'LICENSES'), (await Promise.all(texts)).join('\n\n'));
    await writeFile(
      join(folder, 'README.md'),
      `The media worker of Parley for ${process.platform}-${process.arch}; the service finds it by itself. It needs Debian’s packages ` +
        `${stamp.runtimePackages}, or the same libraries elsewhere. \`mediasoup-worker.json\` has its checksum.\n`,
    );
    const description = {
      name: workerPackage,
      version,
      description: `The media worker of Parley for ${process.platform}-${process.arch}`,
      license: 'SEE LICENSE IN LICENSES',
      type: 'module',
      publishConfig: { access: 'public', provenance: true },
      os: [process.platform],
      cpu: [process.arch],
      libc: ['glibc'],
      files: ['mediasoup-worker', 'mediasoup-worker.json', 'LICENSES'],
    };
    await writeFile(join(folder, 'package.json'), JSON.stringify(description, null, 2));
    await mkdir(into, { recursive: true });
    const pack = ['pack', folder, '--pack-destination', into, '--json'];
    const { stdout } = await promisify(execFile)('npm', pack);
    return join(into, (JSON.parse(stdout) as { filename: string }[])[0]!.filename);
  } finally {
    await rm(folder, { recursive: true });
  }
}

if (import.meta.main)
  process.stdout.write(`${await packWorker(await findWorkerBinary(), resolve(ours, 'dist'))}\n`);
