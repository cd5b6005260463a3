import { parentPort } from 'node:worker_threads';
import { prepareSite, writeSite } from './site.ts';

/** A second of work that the service must not wait for. */
parentPort?.postMessage(writeSite(await prepareSite(), { base: '/docs' }));
