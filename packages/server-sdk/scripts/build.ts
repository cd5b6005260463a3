import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import ts from 'typescript';
import { uncited } from '../../../scripts/uncited.ts';

/**
 * dist/ is the package to publish: index.js as one ES module without imports, and declarations. These are derived from the
 * protocol's schemas, so they bring the protocol's declarations along and need TypeBox for its types; nothing runs of it.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const at = (path: string) => `${root}${path}`;
const packages = at('../');

await rm(at('dist'), { recursive: true, force: true });
await mkdir(at('dist'));
await build({
  entryPoints: [at('src/index.ts')],
  outfile: at('dist/index.js'),
  bundle: true,
  format: 'esm',
  target: 'node22',
  platform: 'node',
});

const { options } = ts.getParsedCommandLineOfConfigFile(
  at('../../tsconfig.json'),
  {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: packages,
    outDir: at('dist/types'),
  },
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (d) => fail([d]) },
)!;
const protocol = at('dist/types/protocol/src/index.js');
const program = ts.createProgram([at('src/index.ts'), at('../protocol/src/index.ts')], {
  ...options,
  // Taken as a source of ours, not as a package: its declarations are written too.
  paths: { '@parley/protocol': [at('../protocol/src/index.ts')] },
});
const result = program.emit(undefined, (path, text) => {
  const toProtocol = relative(dirname(path), protocol);
  ts.sys.writeFile(
    path,
    uncited(text)
      .replace(/((?:from |import\()['"]\.[^'"]+)\.ts(['"])/g, '$1.js$2')
      .replace(/(['"])@parley\/protocol\1/g, `$1${toProtocol}$1`),
  );
});
fail(result.diagnostics);
await cp(at('README.md'), at('dist/README.md'));
const {
  private: _,
  scripts,
  devDependencies,
  ...manifest
} = JSON.parse(await readFile(at('package.json'), 'utf8')) as Record<string, unknown>;
const { dependencies } = JSON.parse(await readFile(at('../protocol/package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
manifest['exports'] = { '.': { types: './types/server-sdk/src/index.d.ts', default: './index.js' } };
manifest['dependencies'] = { typebox: dependencies['typebox'] };
await writeFile(at('dist/package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

function fail(diagnostics: readonly ts.Diagnostic[]): void {
  if (diagnostics.length === 0) return;
  const host = {
    getCanonicalFileName: (f: string) => f,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  };
  console.error(ts.formatDiagnostics(diagnostics, host));
  process.exit(1);
}
