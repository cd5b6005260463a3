// npm run build [-- --out <folder>] [name …]: one tarball a package, ready to publish, in dist/.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildLibrary, lacking, libraries } from './library.ts';
import { root } from './manifest.ts';
import { buildServer } from './server.ts';
import { packWorker } from '../../packages/server/src/platform/media/package.ts';
import { findWorkerBinary } from '../../packages/server/src/platform/media/worker-binary.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: join(root, 'dist') } },
});

type Build = (stage: string, into: string) => Promise<string>;
const builds: Record<string, Build> = {};
for (const library of libraries) {
  const missing = await lacking(library);
  if (missing.length === 0) builds[library.name] = (stage, into) => buildLibrary(library, stage, into);
  else console.log(`${library.name} is left out: there is no ${missing.join(', ')} yet`);
}
Object.assign(builds, {
  server: buildServer,
  // The worker comes from the cache that the service uses; where there is none, it is built, which takes minutes.
  'media-worker': async (_stage: string, into: string) => packWorker(await findWorkerBinary(), into),
} satisfies Record<string, Build>);

const unknown = positionals.filter((name) => !Object.hasOwn(builds, name));
if (unknown.length > 0) {
  console.error(`No package ${unknown.join(', ')}. Packages: ${Object.keys(builds).join(', ')}`);
  process.exit(2);
}
const into = resolve(values.out);
for (const [name, build] of Object.entries(builds)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const stage = await mkdtemp(join(tmpdir(), `parley-${name}-`));
  try {
    console.log(await build(stage, into));
  } finally {
    await rm(stage, { recursive: true });
  }
}
