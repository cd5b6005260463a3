import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { findWorkerBinary } from '../../src/platform/media/worker-binary.ts';
import { startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';

/** A service that carries media. The worker comes from the same cache as that of `npm start`: the first test builds it. */

/** A run of free ports below the kernel's own; another process may still be quicker, and then the service says so. */
export async function mediaPort(ports: number): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const first = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await Promise.all(Array.from({ length: ports }, (_, i) => isFree(first + i)));
    if (free.every(Boolean)) return first;
  }
  throw new Error('no free ports');
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

export async function mediaSettings(workers: number): Promise<Record<string, string>> {
  return {
    MEDIASOUP_WORKER_BIN: await findWorkerBinary(),
    CHAT_MEDIA_WORKERS: String(workers),
    CHAT_MEDIA_PORT: String(await mediaPort(workers)),
  };
}

/** Resolves when the media part of the process is ready. */
export async function mediaReady(service: Service): Promise<Service> {
  for (let tries = 0; tries < 600; tries++) {
    const { media } = (await (await fetch(`${service.url}/readyz`)).json()) as { media?: string };
    if (media === 'ready') return service;
    await delay(100);
  }
  throw new Error(`media did not become ready:\n${service.output()}`);
}

export async function startMediaService(env: Record<string, string> = {}, workers = 2): Promise<Service> {
  const settings = { CHAT_ROLES: 'api,gateway,worker,media', ...(await mediaSettings(workers)), ...env };
  return mediaReady(await startService({ env: settings }));
}
