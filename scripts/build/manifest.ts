// What every published package has: its manifest, the licence, and the tarball.
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

export const root: string = resolve(import.meta.dirname, '../..');

export interface Manifest {
  name: string;
  version: string;
  exports?: Record<string, unknown>;
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  [key: string]: unknown;
}

export const readManifest = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;

/** Of the manifest in the checkout: all but what concerns only the checkout. */
export async function published(from: string): Promise<Manifest> {
  const { private: _, scripts, devDependencies, ...kept } = await readManifest(from);
  const { repository } = await readManifest(root);
  return {
    ...kept,
    // npm compares it with the repository that the provenance names.
    ...(repository === undefined ? {} : { repository }),
    publishConfig: { access: 'public', provenance: true },
  };
}

/** Writes manifest, licence and README into the folder, and packs it. Returns the path of the tarball. */
export async function pack(
  folder: string,
  manifest: Manifest,
  readme: string,
  into: string,
): Promise<string> {
  await cp(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  await cp(readme, join(folder, 'README.md'));
  // npm packs README and LICENSE by itself.
  const files = (await readdir(folder)).filter((name) => !/^(README\.md|LICENSE|package\.json)$/.test(name));
  const text = JSON.stringify({ ...manifest, files: files.sort() }, null, 2);
  await writeFile(join(folder, 'package.json'), `${text}\n`);
  await mkdir(into, { recursive: true });
  const args = ['pack', folder, '--pack-destination', into, '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', args, { maxBuffer: 64 * 1024 * 1024 });
  const [packed] = JSON.parse(stdout) as [{ filename: string }];
  return join(into, packed.filename);
}
