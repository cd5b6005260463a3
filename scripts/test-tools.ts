// Programs of other ecosystems that some tests run: servers and generators of clients that neither npm nor Debian has. Each is fetched once,
// into a cache outside the checkout, by the step that prepares the tests. A test looks for it there, and says loudly if it has to do without:
// `npm test` needs none of them.
import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheHere } from './test-cache.ts';

export type Tool = {
  name: string;
  /** Its folder in the cache, with the version. A test needs the tool if it, or a helper it imports, asks for `cached('<folder>')`. */
  folder: string;
  /** What fetching and running it needs on the PATH, and the Debian packages that bring it. */
  programs: string[];
  packages: string[];
  /** Prepares the folder `into`, which is empty, and returns the command that fills it. */
  fetch: (into: string) => string[];
};

const fetchMs = 10 * 60_000;

const java = { programs: ['java', 'javac', 'mvn'], packages: ['default-jdk-headless', 'maven'] };

/** Puts a Maven artifact, with what it depends on unless it brings that itself, into the folder. */
function maven(artifact: `${string}:${string}:${string}`, alone: boolean): (into: string) => string[] {
  const [group, id, version] = artifact.split(':');
  return (into) => {
    const dependency = `<dependency><groupId>${group}</groupId><artifactId>${id}</artifactId><version>${version}</version></dependency>`;
    const pom = join(into, 'pom.xml');
    writeFileSync(
      pom,
      `<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
        <dependencies>${dependency}</dependencies></project>\n`,
    );
    const options = [`-DoutputDirectory=${into}`, `-DexcludeTransitive=${alone}`, '-DincludeScope=runtime'];
    return ['mvn', '-q', '-B', '-f', pom, 'dependency:copy-dependencies', ...options];
  };
}

const python = 'openapi-python-client==0.29.1';

const nodeOf = (version: string): string =>
  `node${version.split('.')[0]}@npm:node-${process.platform}-${process.arch}@${version}`;
/** Node in the versions that the SDKs promise beside the one that runs here, other runtimes, bundlers, and what looks for mistakes. */
const packageHosts = [
  ...['20.20.2', '22.23.3'].map(nodeOf),
  'bun@1.4.4',
  'deno@2.9.6',
  'vite@8.3.8',
  'webpack@5.112.2',
  'metro@0.87.1',
  'publint@0.3.25',
  '@arethetypeswrong/cli@0.18.5',
  'typescript@6.0.3',
];

export const tools: Tool[] = [
  {
    name: 'mongo-java-server',
    folder: 'mongo-java-server/1.47.0',
    ...java,
    fetch: maven('de.bwaldvogel:mongo-java-server:1.47.0', false),
  },
  {
    name: 'openapi-generator',
    folder: 'openapi-generator/7.14.0',
    programs: [...java.programs, 'go'],
    packages: [...java.packages, 'golang-go'],
    fetch: maven('org.openapitools:openapi-generator-cli:7.14.0', true),
  },
  {
    name: 'openapi-python-client',
    folder: 'openapi-python-client/0.29.1',
    programs: ['python3'],
    packages: ['python3-venv'],
    // What the generated client imports comes with the generator. Both are run from the folder: the paths in `bin` are not.
    fetch: (into) => ['sh', '-c', `python3 -m venv "${into}" && "${into}/bin/pip" install -q ${python}`],
  },
  {
    name: 'kubernetes-validate',
    folder: 'kubernetes-validate/1.37.0',
    programs: ['python3'],
    packages: ['python3-venv'],
    // It brings the schemas of Kubernetes, 22 MB packed, and asks nobody for them.
    fetch: (into) => [
      'sh',
      '-c',
      `python3 -m venv "${into}" && "${into}/bin/pip" install -q kubernetes-validate==1.37.0`,
    ],
  },
  {
    name: 'hey-api',
    folder: 'hey-api/0.95.0',
    programs: ['npm'],
    packages: [],
    fetch: (into) => [
      'npm',
      'install',
      '-q',
      '--prefix',
      into,
      '@hey-api/openapi-ts@0.95.0',
      'typescript@5.9.3',
    ],
  },
  {
    name: 'what installs, bundles and runs the packages',
    folder: 'package-hosts/1',
    programs: ['npm'],
    packages: [],
    fetch: (into) => ['npm', 'install', '-q', '--no-audit', '--no-fund', '--prefix', into, ...packageHosts],
  },
];

/** Fetches a tool into a cache. Returns what went wrong, or null; nothing is left behind then. */
export function fetchTool(tool: Pick<Tool, 'folder' | 'fetch'>, cache: string = cacheHere): string | null {
  const folder = join(cache, tool.folder);
  const into = `${folder}.new`;
  try {
    rmSync(into, { recursive: true, force: true });
    mkdirSync(into, { recursive: true });
    const [program, ...args] = tool.fetch(into);
    const run = spawnSync(program!, args, {
      encoding: 'utf8',
      timeout: fetchMs,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (run.status !== 0) throw run.error ?? new Error(lastLines(`${run.stdout}\n${run.stderr}`));
    renameSync(into, folder);
    return null;
  } catch (error) {
    rmSync(into, { recursive: true, force: true });
    return (error as Error).message;
  }
}

const lastLines = (text: string): string => text.trim().split('\n').slice(-3).join(' ').slice(-500);
