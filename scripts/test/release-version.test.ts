import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { releaseVersion } from '../release-version.ts';

const root = resolve(import.meta.dirname, '../..');
const copy = await mkdtemp(join(tmpdir(), 'parley-release-'));
after(() => rm(copy, { recursive: true }));
const read = (name: string): Promise<string> => readFile(join(copy, name), 'utf8');

test('one command moves all versions and the changelog', async () => {
  const packages = ['client', 'server-sdk', 'server', 'protocol', 'playground', 'dashboard', 'react'];
  const files = [
    'package.json',
    'package-lock.json',
    'CHANGELOG.md',
    'packages/client/src/client.ts',
    'packages/client/test/client.test.ts',
    ...packages.map((name) => `packages/${name}/package.json`),
  ];
  for (const name of files) await cp(join(root, name), join(copy, name));
  const { version } = JSON.parse(await read('package.json')) as { version: string };

  await assert.rejects(releaseVersion(copy, 'next', '2030-01-02'), /is no version/);
  await assert.rejects(releaseVersion(copy, version, '2030-01-02'), /already/);
  const changed = await releaseVersion(copy, '98.7.6', '2030-01-02');
  assert.deepEqual(changed.sort(), files.sort());

  for (const name of packages) {
    const manifest = JSON.parse(await read(`packages/${name}/package.json`)) as Record<string, any>;
    assert.equal(manifest['version'], '98.7.6');
    for (const kind of ['dependencies', 'devDependencies', 'peerDependencies'])
      for (const [wanted, range] of Object.entries(manifest[kind] ?? {}))
        if (wanted.startsWith('@parley/')) assert.equal(range, '98.7.6', `${name} asks for ${wanted}`);
  }
  const lock = JSON.parse(await read('package-lock.json')) as Record<string, any>;
  assert.equal(lock['version'], '98.7.6');
  assert.equal(lock['packages']['packages/client']['version'], '98.7.6');
  assert.equal(lock['packages']['packages/server']['dependencies']['@parley/protocol'], '98.7.6');
  // Others' packages keep theirs.
  const before = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Record<string, any>;
  assert.deepEqual(lock['packages']['node_modules/fastify'], before['packages']['node_modules/fastify']);
  assert.match(await read('packages/client/src/client.ts'), /parley-js\/98\.7\.6/);
  const changes = await readFile(join(root, 'CHANGELOG.md'), 'utf8');
  assert.equal(
    await read('CHANGELOG.md'),
    changes.replace('## Unreleased\n', '## Unreleased\n\n## 98.7.6 (2030-01-02)\n'),
  );
});
