// The server: every module as JavaScript in the folders of the sources, since it finds its migrations, pages and child process by their
// places. Node strips types of no file in node_modules. Its pages are bundled here, and not by a dependency at the first start.
import { cp, glob, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import ts from 'typescript';
import { bundleDashboard } from '../../packages/dashboard/src/build.ts';
import { prepareSite, writeSite } from '../../packages/docs/src/build/site.ts';
import { compressed, packed } from '../../packages/pages/src/index.ts';
import { bundlePlayground } from '../../packages/playground/src/build.ts';
import type { Bundled } from '../../packages/pages/src/bundle.ts';
import { bundledPackages, licenceTexts } from './licences.ts';
import { pack, published, readManifest, root } from './manifest.ts';
import type { Manifest } from './manifest.ts';

const packages = join(root, 'packages');
const server = join(packages, 'server');
/** Tools of the checkout. */
const left =
  /\/platform\/media\/(build|package)\.ts$|\/protocol\/src\/generate\/|\/docs\/src\/build\/|\/(pages|dashboard|playground)\/src\/(build|bundle)\.ts$/;
/** Packages of the checkout that are folders of this one; the manifest's `imports` say where. */
const inside = /(['"`])@parley\/(protocol|pages|playground|dashboard|docs)(?=['"`/])/g;
const mediasoup = join(root, 'node_modules/mediasoup');
/** Of mediasoup: what runs, and the sources that the worker is built from. */
const vendored = [
  'LICENSE',
  'npm-scripts.mjs',
  'node/lib',
  'worker/src',
  'worker/include',
  'worker/fbs',
  'worker/deps',
];
/** Programs of media workers that are their own packages. */
const workers = ['@parley/media-worker-linux-x64', '@parley/media-worker-linux-arm64'];

/** @returns the path of the tarball. */
export async function buildServer(stage: string, into: string): Promise<string> {
  await modules(join(server, 'src'), join(stage, 'src'));
  for (const name of ['protocol', 'pages', 'playground', 'dashboard', 'docs'])
    await modules(join(packages, name, 'src'), join(stage, name, 'src'));
  for (const name of ['migrations', 'schema.sql', 'media'])
    await cp(join(server, name), join(stage, name), { recursive: true });
  await copy(join(server, 'src'), '**/*.sql', join(stage, 'src'));
  await copy(join(packages, 'protocol/generated'), '*.json', join(stage, 'protocol/generated'));
  for await (const name of glob('*.html', { cwd: join(packages, 'playground/browser') })) {
    const page = await readFile(join(packages, 'playground/browser', name), 'utf8');
    await write(join(stage, 'playground/browser', name), commandsOf(page));
  }

  const contained = [
    ...(await bundled(stage, 'dashboard', await bundleDashboard())),
    ...(await bundled(stage, 'playground', await bundlePlayground())),
    ...(await docs(stage)),
  ];
  for (const name of vendored)
    await cp(join(mediasoup, name), join(stage, 'vendor/mediasoup', name), {
      recursive: true,
      filter: (path) => !/\.d\.ts$|\.map$|node\/lib\/test(\/|$)/.test(path),
    });
  const { name, version, license } = await readManifest(mediasoup);
  // Without `type`: its modules are CommonJS.
  await write(
    join(stage, 'vendor/mediasoup/package.json'),
    JSON.stringify({ name, version, license }, null, 2),
  );
  await write(join(stage, 'THIRD-PARTY-LICENSES'), await licenceTexts([...contained, mediasoup]));
  return pack(stage, await manifest(), join(server, 'README.md'), into);
}

/** Every module of a folder without its types. */
async function modules(from: string, into: string): Promise<void> {
  for await (const name of glob('**/*.ts', { cwd: from })) {
    const file = join(from, name);
    if (left.test(file) || name.endsWith('.d.ts')) continue;
    const { outputText, sourceMapText } = ts.transpileModule(placed(file, await readFile(file, 'utf8')), {
      fileName: basename(name),
      compilerOptions: {
        target: ts.ScriptTarget.ES2024,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true,
        rewriteRelativeImportExtensions: true,
        sourceMap: true,
        inlineSources: true,
      },
    });
    const js = join(into, name.replace(/\.ts$/, '.js'));
    await write(js, outputText);
    await write(`${js}.map`, sourceMapText!);
  }
}

/** Modules that are named otherwise than by an import, and what has another place or name in the package. */
function placed(file: string, text: string): string {
  const here = text
    .replace(inside, '$1#$2')
    .replace(/(new URL\('\.\/[^']+)\.ts(', import\.meta\.url\))/g, '$1.js$2')
    .replace(/((?:import|resolve)\(')mediasoup('\))/g, '$1#mediasoup$2');
  if (file.endsWith('/cli/help.ts')) return here; // It names both.
  return commandsOf(here);
}

/** Whoever has the package starts its program, and not a script of the checkout. */
const commandsOf = (text: string): string =>
  text
    .replaceAll('npm run parley -- ', 'npx parley ')
    .replaceAll('npm start -- ', 'npx parley start ')
    .replaceAll('npm start', 'npx parley start');

async function bundled(stage: string, name: string, { files, metafile }: Bundled): Promise<string[]> {
  await write(join(stage, name, 'prebuilt.bin'), packed(await compressed(files)));
  return bundledPackages(metafile);
}

async function docs(stage: string): Promise<string[]> {
  const prepared = await prepareSite(commandsOf);
  const files = writeSite(prepared, { base: '/docs' });
  return bundled(stage, 'docs', { files, metafile: prepared.metafile });
}

async function manifest(): Promise<Manifest> {
  const given = await published(server);
  const { dependencies = {} } = await readManifest(mediasoup);
  const needed = Object.keys({ ...given.dependencies, ...dependencies }).filter(
    (name) => !name.startsWith('@parley/') && name !== 'mediasoup',
  );
  const versions = needed.sort().map(async (name): Promise<[string, string]> => {
    return [name, given.dependencies?.[name] ?? (await mediasoupHas(name))];
  });
  return {
    ...given,
    bin: { parley: 'src/bin.js' },
    exports: { './package.json': './package.json' },
    imports: {
      '#protocol': './protocol/src/index.js',
      '#protocol/generated/*': './protocol/generated/*',
      '#playground': './playground/src/pages.js',
      '#dashboard': './dashboard/src/pages.js',
      '#docs': './docs/src/pages.js',
      '#pages': './pages/src/index.js',
      // Its own package would download or compile a worker when it is installed.
      '#mediasoup': './vendor/mediasoup/node/lib/index.js',
    },
    dependencies: Object.fromEntries(await Promise.all(versions)),
    peerDependencies: Object.fromEntries(workers.map((name) => [name, given.version])),
    peerDependenciesMeta: Object.fromEntries(workers.map((name) => [name, { optional: true }])),
    engines: { node: '>=24.7' },
  };
}

/** The version that the lock file gives to mediasoup: its own, or the one that all share. */
async function mediasoupHas(name: string): Promise<string> {
  const own = join(mediasoup, 'node_modules', name);
  const { version } = await readManifest(own).catch(() => readManifest(join(root, 'node_modules', name)));
  return version;
}

async function copy(from: string, pattern: string, into: string): Promise<void> {
  for await (const name of glob(pattern, { cwd: from })) {
    await mkdir(dirname(join(into, name)), { recursive: true });
    await cp(join(from, name), join(into, name));
  }
}

async function write(path: string, body: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, body);
}
