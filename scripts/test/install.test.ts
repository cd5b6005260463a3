import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const json = (path: string): any => JSON.parse(readFileSync(path, 'utf8'));

test('npm ci installs nothing that only the benchmarks need: they have their own step, bench/install.ts', () => {
  const { packages } = json('package-lock.json');
  const own = Object.keys(json('bench/package.json').dependencies);
  const shared = globSync('packages/*/package.json').flatMap((path) => {
    const { dependencies = {}, devDependencies = {} } = json(path);
    return [...Object.keys(dependencies), ...Object.keys(devDependencies)];
  });
  const alone = own.filter((name) => !shared.includes(name));
  assert.ok(alone.length > 0);
  assert.deepEqual(
    alone.filter((name) => packages[`node_modules/${name}`]),
    [],
  );
  const locked = json('bench/package-lock.json').packages;
  for (const name of own) assert.ok(locked[`node_modules/${name}`], name);
});

test('what packages do at npm ci is decided one by one, and the media worker is not waited for', () => {
  const { allowScripts } = json('package.json');
  const asking = Object.entries<{ hasInstallScript?: boolean }>(json('package-lock.json').packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
  assert.ok(asking.includes('mediasoup'));
  assert.equal(allowScripts['mediasoup'], false);
  assert.deepEqual(
    asking.filter((name) => !(name in allowScripts)),
    [],
  );
});
