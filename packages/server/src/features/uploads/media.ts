import type { IncomingMessage, ServerResponse } from 'node:http';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '@parley/protocol';
import { listenOrigin } from '../../config.ts';
import { createOutbound, systemLookup } from '../../platform/outbound/outbound.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { createManaged } from '../../platform/storage/managed.ts';
import type { ManagedStorage } from '../../platform/storage/managed.ts';
import { createMedia } from '../../platform/storage/media-url.ts';
import type { MediaConfig } from '../../platform/storage/media-url.ts';
import { StorageUnavailable } from '../../platform/storage/port.ts';
import type { MediaStorage } from '../../platform/storage/port.ts';
import type { Platform } from '../platform.ts';
import { dropUpload } from './sql.ts';
import { sweepMedia } from './sweep.ts';
import { findMediaStorage, insertMediaStorage, mediaOf } from './sql/media-storages.ts';

declare module '../context.ts' {
  interface Services {
    media: Media;
  }
}

export type Media = ReturnType<typeof createMediaService>;

const managedPath = '/media';
const sweepMs = 60_000;
/** Numbers that stand for the service's own places (migrations/0028). */
const inDirectory = -1;
const inBucket = -2;
const mostOpened = 1_000;

export function createMediaService(options: Platform) {
  const { config, db, clock, ids, vault, logger } = options;
  const now = () => new Date(clock.now());
  // The operator's own setting may name a private address; what a customer enters may not.
  const outbound = createOutbound({ allowPrivate: true, resolve: systemLookup });
  const bucket = config.media && createMedia(config.media, { request: outbound.request, now });
  let managed: ManagedStorage | undefined;

  const guarded = createOutbound({
    allowPrivate: config.allowPrivateTargets,
    resolve: options.names.resolve,
  });
  const guardedFor =
    (env: number): Outbound['request'] =>
    (request) =>
      guarded.request({ ...request, tenant: env });
  const sealContext = (env: number) => `media storage ${env}`;
  /** Customers' storages by number; a number never changes its meaning. */
  const opened = new Map<number, MediaStorage>();

  /** A storage that is not in use yet, for a test of its settings. Throws TypeError or OutboundRefused if they cannot work. */
  function tryOut(given: MediaConfig, env: number): { storage: MediaStorage; request: Outbound['request'] } {
    if ('endpoint' in given && given.endpoint !== undefined) guarded.checkUrl(given.endpoint);
    const request = guardedFor(env);
    return { storage: createMedia(given, { request, now }), request };
  }

  /**
   * The place where new files of an environment go, as rows store it (migrations/0028). An exchange with it throws
   * `storage_unavailable` if there is none.
   */
  async function placeFor(env: number): Promise<number> {
    return (await mediaOf(db, env)) ?? (bucket ? inBucket : inDirectory);
  }

  async function storageAt(env: number, place: number | null): Promise<MediaStorage> {
    if (place !== null && place > 0) {
      const known = opened.get(place);
      if (known) return known;
      const sealed = await findMediaStorage(db, env, place);
      if (!sealed) throw new ApiError('storage_unavailable');
      const { storage } = tryOut(
        JSON.parse(vault.open(sealed, sealContext(env)).toString()) as MediaConfig,
        env,
      );
      if (opened.size >= mostOpened) opened.clear();
      opened.set(place, storage);
      return storage;
    }
    const storage = place === inDirectory ? managed : place === inBucket ? bucket : (bucket ?? managed);
    if (!storage) throw new ApiError('storage_unavailable');
    return storage;
  }

  /** Runs one exchange with the storage of a place. A provider that fails becomes `storage_unavailable` (uploads#storage-unavailable). */
  async function reach<T>(
    env: number,
    place: number | null,
    work: (storage: MediaStorage) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(await storageAt(env, place));
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      logger.warn({ part: 'media', env, reason: error.message }, 'the media storage failed');
      throw new ApiError('storage_unavailable');
    }
  }

  const sweeper = createPeriodic(sweepMs, logger, 'media clean-up', async () => {
    const done = await sweepMedia(
      db,
      ({ env, key, resource, storage: place }) =>
        reach(env, place, (storage) => storage.remove(key, resource)),
      ({ env, key }, err) => logger.error({ part: 'media', env, key, err }, 'an object could not be removed'),
    );
    logger.debug(done, 'media clean-up');
  });

  return {
    placeFor,
    reach,
    tryOut,
    /** The storage that new files go to. */
    currentFor: async (env: number) => {
      const place = await placeFor(env);
      return {
        storage: await storageAt(env, place),
        request: place > 0 ? guardedFor(env) : outbound.request,
      };
    },
    /** Stores a customer's storage settings and returns their number. */
    add: (tx: Queryable, env: number, given: MediaConfig, shown: object, at: string): Promise<number> => {
      const sealed = vault.seal(JSON.stringify(given), sealContext(env));
      return insertMediaStorage(tx, env, { provider: given.provider, sealed, shown, at });
    },
    /** Deletes an upload at once, whatever happens to the caller's transaction, and removes its object. */
    discard: async (env: number, id: string): Promise<void> => {
      await dropUpload(db, env, id);
      sweeper.wake();
    },
    /** Must be called when objects wait for their removal. */
    wake: () => sweeper.wake(),
    /** Handles transfers of managed files, before the API and its body parser. Returns true if it took the request. */
    intercept: (req: IncomingMessage, res: ServerResponse, stamp: () => Promise<void>): boolean =>
      managed?.handle(req, res, stamp) ?? false,
    /** Must be called when the port is known, for the default of CHAT_MEDIA_ORIGIN. */
    async open(port: number): Promise<void> {
      // Files that were stored before the bucket was configured stay readable.
      if (bucket && !existsSync(join(config.dataDir, 'media'))) return;
      const storage = createManaged({
        directory: join(config.dataDir, 'media'),
        baseUrl: (config.mediaOrigin ?? listenOrigin({ host: config.host, port })) + managedPath,
        secrets: vault.signatures('managed media URLs'),
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
    close: () => {
      outbound.close();
      guarded.close();
    },
  };
}
