import { fileURLToPath } from 'node:url';
import { bundle } from '@parley/pages/bundle';
import type { Bundled } from '@parley/pages/bundle';

/** The web app from its sources. */
export const bundleDashboard = (): Promise<Bundled> =>
  bundle([fileURLToPath(new URL('../browser/main.tsx', import.meta.url))]);

export const build = async (): Promise<Bundled['files']> => (await bundleDashboard()).files;
