import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { BuildOptions, Metafile } from 'esbuild';

/** What all our pages are bundled with. */
const options = {
  bundle: true,
  minify: true,
  splitting: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  outdir: '/assets',
  // A name has the hash of its content, so a browser may keep it for ever.
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  loader: { '.woff2': 'file' },
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'none',
  write: false,
  metafile: true,
  logLevel: 'silent',
  absWorkingDir: fileURLToPath(new URL('../../../', import.meta.url)),
} satisfies BuildOptions;

export interface Bundled {
  /** Scripts, styles and fonts by name. */
  files: Map<string, Uint8Array>;
  metafile: Metafile;
}

export async function bundle(entryPoints: string[], more: BuildOptions = {}): Promise<Bundled> {
  const { outputFiles, metafile } = await build({ ...options, ...more, entryPoints });
  return {
    files: new Map(outputFiles!.map(({ path, contents }) => [basename(path), contents])),
    metafile: metafile!,
  };
}
