import { fileURLToPath } from 'node:url';
import { bundle } from '@parley/pages/bundle';
import type { Bundled } from '@parley/pages/bundle';

/** The demo and the connection test from their sources. */
export const bundlePlayground = (): Promise<Bundled> =>
  bundle(
    ['main', 'connection-test'].map((name) =>
      fileURLToPath(new URL(`../browser/${name}.tsx`, import.meta.url)),
    ),
  );

export const build = async (): Promise<Bundled['files']> => (await bundlePlayground()).files;
