import type { Config } from './config.ts';
import type { Services } from './features/context.ts';
import { bootstrap } from './features/accounts/bootstrap.ts';
import type { Bootstrapped } from './features/accounts/bootstrap.ts';
import { openVault } from './features/accounts/master-key.ts';
import { openEnvironments } from './features/tenancy/sql/environments.ts';
import type { Logger } from './platform/logging.ts';
import type { MasterKeys } from './platform/secrets.ts';
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
  /** Tells other processes with which master key this one seals. */
  announce: (fingerprint: string) => Promise<void>;
  /** Called with the master keys as soon as they are known, because what the first start creates is sealed with one. */
  onMasterKeys: (keys: MasterKeys) => void;
}

/**
 * Migrates the store, opens its vault and fills it at the first start. It waits for the store as long as it takes; a
 * store that answers but does not fit this program ends the start.
 * @returns what the first start created (null if the store was not empty), and the environments in which anybody can
 * be anybody.
 */
export async function prepareStore(
  options: PrepareOptions,
): Promise<{ first: Bootstrapped | null; open: string[] }> {
  const { store, db, services, config, logger } = options;
  return whenReached(logger, async () => {
    const applied = await migrate(store.connection, undefined, {
      force: options.force,
      onWait: (message) => logger.warn(message),
    });
    if (applied.length > 0) logger.debug({ applied }, 'migrated the store');
    options.onMasterKeys((await openVault(db, config, options.announce)).keys);
    const first = await bootstrap(db, services, config.bootstrap);
    const open = await openEnvironments(db);
    if (open.length > 0)
      logger.warn(
        { environments: open, host: config.host },
        'ANYBODY WHO REACHES THIS SERVICE CAN BE ANY USER of a development environment: it takes unsigned tokens. Turn them off: npm run parley -- env set <env id> --dev-tokens false.',
      );
    return { first, open };
  });
}
