import { parentPort, workerData } from 'node:worker_threads';
import { buildSite } from './site.ts';
import type { SiteOptions } from './site.ts';

/** A second of work that the service must not wait for. */
const { site } = await buildSite(workerData as SiteOptions);
parentPort?.postMessage(site);
