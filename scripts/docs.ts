// npm run docs [-- --out <folder>] [--base <path>]: the documentation as static files, to host it elsewhere than in the service.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareSite, root, writeSite } from '../packages/docs/src/build/site.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'dist/docs') },
    base: { type: 'string', default: '' },
  },
});
const base = values.base.replace(/\/+$/, '');
if (base !== '' && !/^(\/[\w.-]+)+$/.test(base)) {
  console.error('--base is the path on its host, such as /parley.');
  process.exit(2);
}
const into = resolve(values.out);
const site = writeSite(await prepareSite(), { base, elsewhere: true });
// Only what an earlier run wrote: pages that are gone, and assets with other hashes.
for (const folder of ['assets', 'guides', 'operations', 'reference', 'sdk'])
  await rm(join(into, folder), { recursive: true, force: true });
for (const [name, body] of site) {
  await mkdir(dirname(join(into, name)), { recursive: true });
  await writeFile(join(into, name), body);
}
console.log(`${site.size} files in ${into}, for ${base === '' ? 'the root of a host' : base}`);
