// A library: every module as JavaScript with its types and a source map, in the folders of the sources, so that a bundler takes only what
// is used and a stack trace names the module that is meant.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import ts from 'typescript';
import { routes } from '../../packages/server-sdk/src/generated/routes.ts';
import { uncited } from '../uncited.ts';
import { pack, published, root } from './manifest.ts';
import { plainTypes, protocolNames } from './plain-types.ts';
import type { Tables } from './plain-types.ts';

interface Library {
  /** Its folder in packages/. What it exports is in its manifest there. */
  name: string;
  engines?: string;
  /** Whether it is for React Native too. */
  native?: true;
  tables?: Tables;
  internal?: string[];
  /** An extra entry for pages without a bundler: one minified file. */
  minified?: string;
}

const operations = Object.keys(routes);

export const libraries: Library[] = [
  {
    name: 'client',
    engines: '>=20',
    native: true,
    internal: ['AckData', 'FrameData'],
    minified: 'parley.min.js',
  },
  {
    name: 'server-sdk',
    engines: '>=20',
    tables: { key: 'OperationName', keys: operations, of: ['Input', 'Output'] },
  },
  { name: 'react' },
];

const target = 'es2022';
const types = 'protocol.d.ts';
/** The folder of the modules in the package. */
const dist = 'dist';

/** Which files of it are not written yet: its manifest may be ahead of them. */
export async function lacking(library: Library): Promise<string[]> {
  const from = join(root, 'packages', library.name);
  const { exports = {} } = await published(from);
  return [...Object.values(exports as Record<string, string>), 'README.md'].filter(
    (file) => !ts.sys.fileExists(join(from, file)),
  );
}

/** @returns the path of the tarball. */
export async function buildLibrary(library: Library, stage: string, into: string): Promise<string> {
  const from = join(root, 'packages', library.name);
  const manifest = await published(from);
  const entries = Object.entries(manifest.exports as Record<string, string>);
  const modules = entries.filter(([, file]) => /\.tsx?$/.test(file));
  const sources = modules.map(([, file]) => resolve(from, file));
  const { options, names } = emit(from, sources, join(stage, dist));
  if (names.length > 0)
    await write(join(stage, dist, types), await plainTypes(names, options, join(from, 'src'), library));
  const styles = entries.map(([, file]) => file).filter((file) => file.endsWith('.css'));
  // Each with what it imports: readable, one file.
  for (const file of styles)
    await build({ entryPoints: [join(from, file)], outfile: join(stage, inPackage(file)), bundle: true });

  const exported = Object.fromEntries(
    entries.map(([path, file]) => {
      const placed = inPackage(file);
      return [path, /\.tsx?$/.test(file) ? conditions(placed, library.native) : placed];
    }),
  );
  if (library.minified !== undefined) {
    await build({
      entryPoints: [sources[0]!],
      outfile: join(stage, dist, library.minified),
      bundle: true,
      minify: true,
      sourcemap: 'linked',
      format: 'esm',
      target,
      platform: 'neutral',
      external: ['node:*'],
    });
    await portableMap(join(stage, dist, `${library.minified}.map`));
    exported[`./${library.minified}`] = {
      types: `./${dist}/index.d.ts`,
      default: `./${dist}/${library.minified}`,
    };
  }
  await forOlderResolvers(stage, modules);
  return pack(
    stage,
    {
      ...manifest,
      // For resolvers that know no `exports`: React Native’s before 0.79.
      main: `./${dist}/index.js`,
      types: `./${dist}/index.d.ts`,
      ...(library.native ? { 'react-native': `./${dist}/index.js` } : {}),
      exports: { ...exported, './package.json': './package.json' },
      ...(library.engines === undefined ? {} : { engines: { node: library.engines } }),
    },
    join(from, 'README.md'),
    into,
  );
}

const inPackage = (file: string): string =>
  file.replace(/^\.\/src\//, `./${dist}/`).replace(/\.tsx?$/, '.js');
const conditions = (js: string, native?: true) => ({
  types: js.replace(/\.js$/, '.d.ts'),
  ...(native ? { 'react-native': js } : {}),
  default: js,
});

/** Writes the modules that the entries reach, and returns the names that they take from the protocol. */
function emit(
  from: string,
  entries: string[],
  into: string,
): { options: ts.CompilerOptions; names: string[] } {
  const src = join(from, 'src');
  const config = ts.sys.fileExists(join(from, 'tsconfig.json')) ? from : root;
  const { options } = ts.getParsedCommandLineOfConfigFile(
    join(config, 'tsconfig.json'),
    {
      noEmit: false,
      declaration: true,
      sourceMap: true,
      inlineSources: true,
      stripInternal: true,
      rewriteRelativeImportExtensions: true,
      // `npm run check` has looked for mistakes.
      noCheck: true,
      target: ts.ScriptTarget.ES2022,
      rootDir: src,
      outDir: into,
    },
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (d) => fail([d]) },
  )!;
  const program = ts.createProgram(entries, options);
  const sources = program.getSourceFiles().filter((file) => file.fileName.startsWith(`${src}/`));
  for (const source of sources) {
    const files = new Map<string, string>();
    fail(program.emit(source, (path, text) => files.set(path, text)).diagnostics);
    // Nothing runs of a module that has only types.
    const onlyTypes = [...files].some(([path, text]) => path.endsWith('.js') && /^export \{\};$/m.test(text));
    for (const [path, text] of files)
      if (!onlyTypes || path.endsWith('.d.ts'))
        ts.sys.writeFile(path, inPlace(path, text, source.fileName, into));
  }
  return { options, names: protocolNames(sources.map((file) => file.text)) };
}

function inPlace(path: string, text: string, source: string, into: string): string {
  if (path.endsWith('.map')) return portable(text, [basename(source)]);
  if (!path.endsWith('.d.ts')) return text;
  const up = relative(dirname(path), join(into, types)).replace(/\.d\.ts$/, '.js');
  return uncited(text)
    .replace(/((?:from |import\()['"]\.[^'"]+)\.tsx?(['"])/g, '$1.js$2')
    .replaceAll("'@parley/protocol'", `'${up.startsWith('.') ? up : `./${up}`}'`);
}

/** A source map has the sources in it, and no path of the machine that made it. */
function portable(text: string, sources: string[]): string {
  const { sourceRoot, ...map } = JSON.parse(text) as { sources: string[]; sourceRoot?: string };
  return JSON.stringify({ ...map, sources });
}

async function portableMap(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const { sources } = JSON.parse(text) as { sources: string[] };
  await writeFile(
    file,
    portable(
      text,
      sources.map((source) => source.replace(/^.*packages\//, '')),
    ),
  );
}

/** Where `exports` is not known, `@parley/client/file` is the file `file.js`. */
async function forOlderResolvers(stage: string, modules: [path: string, file: string][]): Promise<void> {
  for (const [path, file] of modules) {
    const js = inPackage(file);
    if (path === '.') continue;
    for (const end of ['.js', '.d.ts']) await write(join(stage, `${path}${end}`), `export * from '${js}';\n`);
  }
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

function fail(diagnostics: readonly ts.Diagnostic[]): void {
  if (diagnostics.length === 0) return;
  const host = {
    getCanonicalFileName: (f: string) => f,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  };
  throw new Error(ts.formatDiagnostics(diagnostics, host));
}
