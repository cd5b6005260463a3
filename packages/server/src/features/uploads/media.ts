import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { ApiError } from '@parley/protocol';
import type { Clock, Ids } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import { createOutbound, systemLookup } from '../../platform/outbound/outbound.ts';
import { createPeriodic } from '../../platform/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { createManaged } from '../../platform/storage/managed.ts';
import type { ManagedStorage } from '../../platform/storage/managed.ts';
import { createMedia } from '../../platform/storage/media-url.ts';
import type { MediaConfig } from '../../platform/storage/media-url.ts';
import { StorageUnavailable } from '../../platform/storage/port.ts';
import type { MediaStorage } from '../../platform/storage/port.ts';
import { dropUpload } from './sql.ts';
import { sweepMedia } from './sweep.ts';

/** What operations see of the media storage. */
export interface Media {
  /** Where an environment's files are. Throws storage_unavailable where there is no such place. */
  storageFor(env: number): MediaStorage;
  /** One exchange with it; a provider that fails is storage_unavailable (SPEC 7). */
  reach<T>(env: number, work: (storage: MediaStorage) => Promise<T>): Promise<T>;
  /** Forgets an upload at once, whatever becomes of the caller's transaction, and removes its object. */
  discard(env: number, id: string): Promise<void>;
  /** Objects wait for their removal. */
  wake(): void;
}

export interface MediaService extends Media {
  /** Transfers of managed files, in front of the API and its body parser: true when it took the request. */
  intercept(req: IncomingMessage, res: ServerResponse, stamp: () => Promise<void>): boolean;
  /** To be called when the port is known, for the default of CHAT_MEDIA_ORIGIN. */
  open(port: number): Promise<void>;
  /** Clean-up runs from here on. */
  start(): void;
  stop(): Promise<void>;
  /** Its connections to the storage. */
  close(): void;
}

export interface MediaOptions {
  config: {
    host: string;
    dataDir: string;
    media: MediaConfig | undefined;
    mediaOrigin: string | undefined;
  };
  db: Queryable;
  clock: Clock;
  ids: Ids;
  vault: Vault;
  logger: Logger;
}

const managedPath = '/media';
const sweepMs = 60_000;

export function createMediaService(options: MediaOptions): MediaService {
  const { config, db, clock, ids, vault, logger } = options;
  const now = () => new Date(clock.now());
  // The operator's own setting may name a private address; what a customer types may not.
  const outbound = createOutbound({ allowPrivate: true, resolve: systemLookup });
  const bucket = config.media && createMedia(config.media, { request: outbound.request, now });
  let managed: ManagedStorage | undefined;

  function storageFor(_env: number): MediaStorage {
    const storage = bucket ?? managed;
    if (!storage) throw new ApiError('storage_unavailable');
    return storage;
  }

  async function reach<T>(env: number, work: (storage: MediaStorage) => Promise<T>): Promise<T> {
    try {
      return await work(storageFor(env));
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      logger.warn({ part: 'media', env, reason: error.message }, 'the media storage failed');
      throw new ApiError('storage_unavailable');
    }
  }

  const sweeper = createPeriodic(sweepMs, logger, 'media clean-up', async () => {
    const done = await sweepMedia(
      db,
      ({ env, key, resource }) => reach(env, (storage) => storage.remove(key, resource)),
      ({ env, key }, err) => logger.error({ part: 'media', env, key, err }, 'an object could not be removed'),
    );
    logger.debug(done, 'media clean-up');
  });

  return {
    storageFor,
    reach,
    discard: async (env, id) => {
      await dropUpload(db, env, id);
      sweeper.wake();
    },
    wake: () => sweeper.wake(),
    intercept: (req, res, stamp) => managed?.handle(req, res, stamp) ?? false,
    async open(port) {
      if (bucket) return;
      const storage = createManaged({
        directory: join(config.dataDir, 'media'),
        baseUrl: (config.mediaOrigin ?? ownOrigin(config.host, port)) + managedPath,
        secret: vault.mac('managed media URLs'),
        now,
        uniqueName: () => ids.secret(24),
      });
      try {
        await storage.open();
        managed = storage;
      } catch (err) {
        logger.error({ part: 'media', err }, 'the media directory cannot be used: uploads are off');
      }
    },
    start: () => sweeper.start(),
    stop: () => sweeper.stop(),
    close: () => outbound.close(),
  };
}

function ownOrigin(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}
