// The servers and browsers that tests run against and that npm does not install.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { cached, onPath } from './test-cache.ts';
import { fetchTool, tools } from './test-tools.ts';
import type { Tool } from './test-tools.ts';

type Part = {
  name: string;
  /** The part is present if all of these are: programs on the PATH, or globs of absolute paths. */
  programs: string[];
  /** Debian packages that bring it. */
  packages: string[];
  /** A test file needs the part if it, or a test helper it imports, matches this. */
  named: RegExp;
  /** Tests run without it, and say so, where it cannot be installed. */
  optional?: true;
};

const mediaWorker = /\bfindWorkerBinary\b/;

const parts: Part[] = [
  { name: 'Redis', programs: ['redis-server'], packages: ['redis-server'], named: /\bredis-server\b/ },
  {
    name: 'PostgreSQL 15 or newer, outside the embedded one',
    programs: ['/usr/lib/postgresql/{1[5-9],[2-9][0-9]}/bin/postgres'],
    packages: ['postgresql'],
    named: /\/usr\/lib\/postgresql\b/,
  },
  { name: 'PgBouncer', programs: ['pgbouncer'], packages: ['pgbouncer'], named: /'pgbouncer'/ },
  {
    name: 'MariaDB',
    programs: ['mariadbd', 'mariadb-install-db'],
    packages: ['mariadb-server'],
    named: /\bmariadb-install-db\b/,
  },
  {
    name: 'Chromium',
    programs: ['chromium', 'chromium-headless-shell'],
    packages: ['chromium', 'chromium-headless-shell'],
    named: /\bchromium-headless-shell\b/,
  },
  {
    name: 'Firefox',
    programs: ['firefox-esr'],
    packages: ['firefox-esr'],
    named: /\bfirefox-esr\b/,
    optional: true,
  },
  {
    name: 'OpenStack Swift, the S3 server of the storage tests',
    programs: [
      'swift-proxy-server',
      'swift-account-server',
      'swift-container-server',
      'swift-object-server',
      'memcached',
    ],
    packages: ['swift-proxy', 'swift-account', 'swift-container', 'swift-object', 'memcached'],
    named: /\bswift-proxy\b/,
  },
  {
    name: 'what the media worker of calls is built with',
    programs: [
      'g++',
      'flatc',
      '/usr/include/uv.h',
      '/usr/include/srtp2/srtp.h',
      '/usr/include/openssl/ssl.h',
    ],
    packages: [
      'g++',
      'flatbuffers-compiler',
      'libflatbuffers-dev',
      'libssl-dev',
      'libuv1-dev',
      'libsrtp2-dev',
    ],
    named: mediaWorker,
  },
  { name: 'TURN server', programs: ['turnserver'], packages: ['coturn'], named: /\bturnserver\b/ },
  { name: 'promtool', programs: ['promtool'], packages: ['prometheus'], named: /'promtool'/ },
  { name: 'nginx', programs: ['/usr/sbin/nginx'], packages: ['nginx'], named: /'\/usr\/sbin\/nginx'/ },
  { name: 'Caddy', programs: ['caddy'], packages: ['caddy'], named: /'caddy'/ },
  {
    name: 'HAProxy',
    programs: ['/usr/sbin/haproxy'],
    packages: ['haproxy'],
    named: /'\/usr\/sbin\/haproxy'/,
  },
  {
    name: 'systemd-analyze',
    programs: ['systemd-analyze'],
    packages: ['systemd'],
    named: /'systemd-analyze'/,
  },
  { name: 'OpenSSL', programs: ['openssl'], packages: ['openssl'], named: /'openssl'/ },
];

/** Installs everything that `files` need. Returns what is wrong, or null. */
export function provideParts(files: string[]): string | null {
  const text = sources(files);
  const missing = parts.filter((part) => part.named.test(text) && !isPresent(part));
  const needed = missing.filter((part) => !part.optional);
  const problem = needed.length === 0 ? null : provide(needed);
  if (!problem) {
    for (const part of missing) if (part.optional) provide([part]);
    for (const tool of tools) if (text.includes(`cached('${tool.folder}')`)) provideTool(tool);
  }
  return problem ?? (mediaWorker.test(text) ? provideMediaWorker() : null);
}

/** The tests go on without it: those that would run it say loudly that they did not. */
function provideTool(tool: Tool): void {
  if (cached(tool.folder) !== undefined && isPresent(tool)) return;
  console.log(`Fetching ${tool.name}`);
  // A program may be there without all that it needs: Debian's python3 without its venv.
  let problem = isPresent(tool) ? fetchTool(tool) : 'its programs are missing';
  if (problem && tool.packages.length > 0) problem = provide([tool]) ?? fetchTool(tool);
  if (problem) console.log(`${tool.name} cannot be fetched: ${problem}`);
}

/** Builds the media worker once, into the cache that the service uses too, so that no test waits for it. */
function provideMediaWorker(): string | null {
  const build = resolve('packages/server/src/platform/media/build.ts');
  const run = spawnSync(process.execPath, [build], { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
  return run.status === 0 ? null : `The media worker could not be built:\n${run.stderr}`;
}

function provide(missing: Pick<Part, 'name' | 'programs' | 'packages'>[]): string | null {
  const names = missing.map((part) => part.name).join(', ');
  const packages = missing.flatMap((part) => part.packages);
  const command = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(' ')}`;
  if (process.getuid?.() !== 0 || !onPath('apt-get')) {
    return `The tests need ${names}. On Debian, as root: ${command}`;
  }
  console.log(`Installing ${names}: ${command}`);
  const problem = withoutStartingServices(() => install(packages));
  if (problem) return problem;
  const still = missing.filter((part) => !isPresent(part));
  return still.length === 0
    ? null
    : `Installed ${packages.join(' ')}, but ${still[0]?.name} is still not found.`;
}

/** The text of the files and of the test helpers they import, directly or not. */
export function sources(files: string[]): string {
  const seen = new Set<string>();
  const queue = files.map((file) => resolve(file));
  const texts: string[] = [];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file) || !existsSync(file)) continue;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    texts.push(text);
    for (const match of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g)) {
      const imported = resolve(dirname(file), match[1] ?? '');
      if (!imported.includes('/src/')) queue.push(imported);
    }
  }
  return texts.join('\n');
}

function isPresent(part: Pick<Part, 'programs'>): boolean {
  return part.programs.every((program) =>
    program.startsWith('/') ? globSync(program).length > 0 : onPath(program),
  );
}

function install(packages: string[]): string | null {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    const run = spawnSync('apt-get', args, { env, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    if (run.status !== 0) return `apt-get ${args.join(' ')} failed:\n${run.stdout}${run.stderr}`;
  }
  return null;
}

/** Debian starts a service when it is installed; tests start their own, so policy-rc.d forbids it meanwhile. */
function withoutStartingServices<T>(action: () => T): T {
  const policy = '/usr/sbin/policy-rc.d';
  if (existsSync(policy)) return action();
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return action();
  } finally {
    rmSync(policy, { force: true });
  }
}
