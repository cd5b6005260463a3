// The first page of the dashboard must fit into 250 kB, gzipped: the entry, what it imports, its styles, the font that is
// loaded with it, and the overview.
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';
import { bundleDashboard } from '../packages/dashboard/src/build.ts';

const LIMIT = 250_000;

const { files, metafile } = await bundleDashboard();
const outputs = Object.entries(metafile.outputs);
const made = (source: string) =>
  outputs.filter(([, output]) => output.entryPoint?.endsWith(source)).map(([path]) => path);
const styles = outputs.map(([path]) => path).filter((path) => path.endsWith('.css'));
const fonts = outputs.map(([path]) => path).filter((path) => path.includes('/geist-latin-wght-normal-'));

const loaded = new Set<string>();
const load = (path: string): void => {
  if (loaded.has(path)) return;
  loaded.add(path);
  for (const { path: next, kind } of metafile.outputs[path]?.imports ?? [])
    if (kind === 'import-statement') load(next);
};
for (const path of [...made('browser/main.tsx'), ...made('pages/overview.tsx'), ...styles, ...fonts])
  load(path);

const bodies = [...loaded].map((path) => files.get(basename(path))!);
const size = bodies.reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0);
console.log(`packages/dashboard: ${size} of ${LIMIT} bytes in ${loaded.size} files, minified and gzipped`);
process.exitCode = loaded.size > 3 && size <= LIMIT ? 0 : 1;
