// The client SDK without calls must fit into 15 kB, minified and gzipped, because pages load it before they show
// anything.
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const LIMIT = 15 * 1024;

const { outputFiles } = await build({
  entryPoints: ['packages/client/src/index.ts'],
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  external: ['node:*'],
  write: false,
});
const size = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents, { level: 9 }).length, 0);
console.log(`packages/client: ${size} of ${LIMIT} bytes, minified and gzipped`);
process.exitCode = size <= LIMIT ? 0 : 1;
