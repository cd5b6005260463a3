// Installs what only the benchmarks need (peers to compare with), unless it is there as bench/package-lock.json says. Nobody who just runs
// or tests the service has to. The argument names a folder in bench with packages of its own.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Lock {
  packages: Record<string, { version?: string; optional?: boolean }>;
}

const folder = fileURLToPath(new URL(`./${process.argv[2] ?? '.'}/`, import.meta.url));
const read = (path: string): Lock => JSON.parse(readFileSync(`${folder}${path}`, 'utf8')) as Lock;

function isInstalled(): boolean {
  const path = 'node_modules/.package-lock.json';
  if (!existsSync(`${folder}${path}`)) return false;
  const { packages } = read(path);
  return Object.entries(read('package-lock.json').packages).every(
    ([name, { version, optional }]) => name === '' || optional || packages[name]?.version === version,
  );
}

if (!isInstalled()) {
  process.stderr.write('installing what only the benchmarks need\n');
  const { status } = spawnSync('npm', ['ci'], { cwd: folder, stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
}
