import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import ts from 'typescript';
import { uncited } from '../../../scripts/uncited.ts';

/**
 * dist/ is the package to publish: parley.js and what a page need not load as ES modules, and declarations that need no other
 * package (the types taken from the protocol package, src/types.ts, are written out).
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const at = (path: string) => `${root}${path}`;

const entries = {
  parley: 'index',
  bots: 'bots',
  calls: 'calls/index',
  file: 'outbox/file',
  'indexed-db': 'outbox/indexed-db',
  'key-value': 'outbox/key-value',
};

await rm(at('dist'), { recursive: true, force: true });
await mkdir(at('dist'));
await build({
  entryPoints: Object.fromEntries(
    Object.entries(entries).map(([name, path]) => [name, at(`src/${path}.ts`)]),
  ),
  outdir: at('dist'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  // mediasoup-client is the one dependency, and of calls alone.
  external: ['node:*', 'mediasoup-client'],
});

const config = ts.getParsedCommandLineOfConfigFile(
  at('tsconfig.json'),
  {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    stripInternal: true,
    rootDir: at('src'),
    outDir: at('dist'),
  },
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (d) => fail([d]) },
)!;
const program = ts.createProgram(
  Object.values(entries).map((path) => at(`src/${path}.ts`)),
  config.options,
);
const result = program.emit(undefined, (path, text) => {
  // The protocol's own files are outside of rootDir.
  if (path.startsWith(at('dist')) && !path.includes('..'))
    ts.sys.writeFile(path, uncited(text).replace(/((?:from |import\()'\.[^']+)\.ts'/g, "$1.js'"));
});
fail(result.diagnostics.filter((d) => d.code !== 6059));
await writeFile(at('dist/types.d.ts'), await plainTypes());
await cp(at('README.md'), at('dist/README.md'));
const {
  private: _,
  scripts,
  devDependencies,
  ...manifest
} = JSON.parse(await readFile(at('package.json'), 'utf8')) as Record<string, unknown>;
manifest['exports'] = Object.fromEntries(
  Object.entries(entries).map(([name, path]) => [
    name === 'parley' ? '.' : `./${name}`,
    { types: `./${path}.d.ts`, default: `./${name}.js` },
  ]),
);
await writeFile(at('dist/package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(
  `parley.js: ${gzipSync(await readFile(at('dist/parley.js')), { level: 9 }).length} bytes gzipped`,
);

/** src/types.ts with every type written out. */
async function plainTypes(): Promise<string> {
  const source = await readFile(at('src/types.ts'), 'utf8');
  const names = [...source.matchAll(/^ {2}(\w+),$/gm)].map((m) => m[1]!);
  const generic = new Set(['AckData', 'FrameData']);
  const plain = names.filter((name) => !generic.has(name));
  const probe = at('src/__plain.ts');
  const text = `import type * as P from './types.ts';
    type Plain<T> = T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
    ${plain.map((name) => `export type ${name} = Plain<P.${name}>;`).join('\n')}`;
  const host = ts.createCompilerHost(config.options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (path) => path === probe || fileExists(path);
  host.getSourceFile = (path, ...rest) =>
    path === probe ? ts.createSourceFile(path, text, rest[0]) : getSourceFile(path, ...rest);
  const checked = ts.createProgram([probe], config.options, host);
  const checker = checked.getTypeChecker();
  const { NoTruncation, InTypeAlias, UseSingleQuotesForStringLiteralType } = ts.TypeFormatFlags;
  const flags = NoTruncation | InTypeAlias | UseSingleQuotesForStringLiteralType;
  const lines: string[] = [];
  checked.getSourceFile(probe)!.forEachChild((node) => {
    if (!ts.isTypeAliasDeclaration(node) || node.name.text === 'Plain') return;
    const type = checker.typeToString(checker.getTypeAtLocation(node), undefined, flags);
    if (/\bany\b|Plain</.test(type)) throw new Error(`${node.name.text} is not plain: ${type}`);
    lines.push(`export type ${node.name.text} = ${type};`);
  });
  // Only internals speak of frames.
  for (const name of generic)
    lines.push(`export type ${name}<T extends string> = T extends '' ? never : any;`);
  return `${lines.join('\n')}\n`;
}

function fail(diagnostics: readonly ts.Diagnostic[]): void {
  if (diagnostics.length === 0) return;
  console.error(
    ts.formatDiagnostics(diagnostics, {
      getCanonicalFileName: (f) => f,
      getCurrentDirectory: () => root,
      getNewLine: () => '\n',
    }),
  );
  process.exit(1);
}
