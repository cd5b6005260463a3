// npm run release-version -- 0.2.0: the version of every package, of what they ask of each other, and in the changelog.
import { glob, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** Where the client says its version to the service. */
const named = ['packages/client/src/client.ts', 'packages/client/test/client.test.ts'];
const dependencies = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];

type Json = Record<string, unknown>;

/** Sets the version of ours in a manifest, or in an entry of the lock file. */
function moved(manifest: Json, version: string): Json {
  if ('version' in manifest) manifest['version'] = version;
  for (const kind of dependencies) {
    const wanted = manifest[kind] as Record<string, string> | undefined;
    for (const name of Object.keys(wanted ?? {})) if (name.startsWith('@parley/')) wanted![name] = version;
  }
  return manifest;
}

/** @returns the files that were changed, by their path in the checkout. */
export async function releaseVersion(root: string, version: string, date: string): Promise<string[]> {
  if (!/^\d+\.\d+\.\d+(-[0-9a-z.-]+)?$/.test(version)) throw new Error(`${version} is no version: 0.2.0`);
  const changed: string[] = [];
  const change = async (name: string, edit: (text: string) => string): Promise<void> => {
    const before = await readFile(join(root, name), 'utf8');
    const after = edit(before);
    if (after === before) return;
    await writeFile(join(root, name), after);
    changed.push(name);
  };
  const asJson = (edit: (value: Json) => unknown) => (text: string) =>
    `${JSON.stringify(edit(JSON.parse(text) as Json), null, 2)}\n`;

  const { version: old } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  if (old === version) throw new Error(`this is ${version} already`);
  const manifests = await Array.fromAsync(glob('{package.json,packages/*/package.json}', { cwd: root }));
  for (const name of manifests.sort())
    await change(
      name,
      asJson((manifest) => moved(manifest, version)),
    );
  await change(
    'package-lock.json',
    asJson((lock) => {
      lock['version'] = version;
      const entries = lock['packages'] as Record<string, Json>;
      for (const [path, entry] of Object.entries(entries))
        if (path === '' || /^packages\/[^/]+$/.test(path)) moved(entry, version);
      return lock;
    }),
  );
  for (const name of named)
    await change(name, (text) => text.replace(/(parley-js(?:\/|%2F))\d[0-9a-z.-]*/g, `$1${version}`));
  await change('CHANGELOG.md', (text) => {
    const heading = '## Unreleased\n';
    if (!text.includes(heading)) throw new Error('CHANGELOG.md has no "## Unreleased"');
    return text.replace(heading, `${heading}\n## ${version} (${date})\n`);
  });
  return changed;
}

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '..');
  const changed = await releaseVersion(root, process.argv[2] ?? '', new Date().toISOString().slice(0, 10));
  console.log(changed.join('\n'));
}
