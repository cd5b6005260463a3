// The licences of others' code that a package carries.
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { readManifest, root } from './manifest.ts';

/** The folders of the npm packages, of which a bundle has something in it. */
export function bundledPackages(metafile: Metafile): string[] {
  const folders = Object.values(metafile.outputs)
    .flatMap((output) => Object.entries(output.inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((folder) => folder !== undefined);
  return [...new Set(folders)].map((folder) => join(root, folder)).sort();
}

/** One text with the licence of each. */
export async function licenceTexts(folders: string[]): Promise<string> {
  const parts: string[] = [];
  for (const folder of new Set(folders)) {
    const { name, version, license } = await readManifest(folder);
    const [file] = (
      await Array.fromAsync(glob('{LICENSE,LICENCE,License,license}*', { cwd: folder }))
    ).sort();
    if (file === undefined && license === undefined) throw new Error(`${name} says nothing of its licence`);
    const text = file === undefined ? '' : `\n${await readFile(join(folder, file), 'utf8')}`;
    parts.push(`==== ${name} ${version} (${String(license)}) ====\n${text}`);
  }
  return `${parts.sort().join('\n\n')}\n`;
}
