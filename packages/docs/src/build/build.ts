import { prepareSite, writeSite } from './site.ts';
import type { Site } from './site.ts';

export const build = async (): Promise<Site> => writeSite(await prepareSite(), { base: '/docs' });
