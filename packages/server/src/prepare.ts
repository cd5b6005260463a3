import type { Config } from './config.ts';
import type { Services } from './features/context.ts';
import { bootstrap, openVault } from './features/tenancy/bootstrap.ts';
import type { Bootstrapped } from './features/tenancy/bootstrap.ts';
import { developmentEnvironment } from './features/tenancy/environments.ts';
import type { Logger } from './platform/logging.ts';
import type { PgDb } from './platform/postgres/db.ts';
import { migrate } from './platform/postgres/migrate.ts';
import { whenReached } from './platform/postgres/reach.ts';
import type { Store } from './platform/postgres/store.ts';

export interface PrepareOptions {
  store: Store;
  db: PgDb;
  services: Services;
  config: Config;
  logger: Logger;
  /** Migrates although processes of earlier versions serve. */
  force: boolean;
  /** Called with the master key as soon as it is known, because what the first start creates is sealed with it. */
  onMasterKey: (key: Uint8Array) => void;
}

/**
 * Migrates the store, opens its vault and fills it at the first start. It waits for the store as long as it takes; a
 * store that answers but does not fit this program ends the start.
 * @returns what the first start created; null if the store was not empty.
 */
export async function prepareStore(options: PrepareOptions): Promise<Bootstrapped | null> {
  const { store, db, services, config, logger } = options;
  return whenReached(logger, async () => {
    const applied = await migrate(store.connection, undefined, {
      force: options.force,
      onWait: (message) => logger.warn(message),
    });
    if (applied.length > 0) logger.info({ applied }, 'migrated the store');
    options.onMasterKey((await openVault(db, config.masterKey, config.dataDir)).masterKey);
    const made = await bootstrap(db, services, config.bootstrap);
    const open = config.loopback ? null : await developmentEnvironment(db);
    if (open !== null)
      logger.warn(
        { env: open, host: config.host },
        'ANYBODY WHO REACHES THIS SERVICE CAN BE ANY USER of a development environment: it takes unsigned tokens. Turn them off (npm run parley -- env set --dev-tokens false), or listen on 127.0.0.1.',
      );
    return made;
  });
}
