import { stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { listenOrigin } from '../config.ts';
import type { Config } from '../config.ts';
import { openVault } from '../features/accounts/master-key.ts';
import { operatorCaller } from '../features/callers.ts';
import { createIds, pooledRandom, systemClock } from '../platform/clock.ts';
import { PgDb } from '../platform/postgres/db.ts';
import { migrate } from '../platform/postgres/migrate.ts';
import { unreachable } from '../platform/postgres/reach.ts';
import { attachStore } from '../platform/postgres/store.ts';
import { UsageError } from './command.ts';
import type { Line, StoreLine } from './command.ts';
import { storeExists } from './sql.ts';

/** Refuses a data directory without a store: a command would otherwise make an empty one and work on it. */
export async function requireDataDirectory({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<void> {
  if (databaseUrl !== undefined) return;
  const path = resolve(dataDir);
  const isThere = (file: string): Promise<boolean> =>
    stat(file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
        throw error;
      },
    );
  const hint =
    'Set CHAT_DATA_DIR to the data directory of the service, or DATABASE_URL; parley start makes a new one.';
  if (!(await isThere(path))) throw new UsageError(`The data directory ${path} does not exist. ${hint}`);
  if (!(await isThere(join(path, 'postgres', 'PG_VERSION'))))
    throw new UsageError(`The data directory ${path} has no store. ${hint}`);
}

/** The name that the audit log shows: the user of this machine who runs the command. */
function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    // This user id has no name on this machine.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Runs a command on the store, and closes the store behind it. */
export async function withStore<T>(line: Line, run: (line: StoreLine) => Promise<T>): Promise<T> {
  const { config, logger } = line;
  await requireDataDirectory(config);
  const store = await attachStore(config, logger);
  const db = new PgDb(store.connection, { max: 2, onError: () => undefined });
  try {
    const exists = await storeExists(db).catch((error: Error) => {
      throw unreachable(store.connection, error.cause ?? error);
    });
    if (!exists) throw new UsageError('The database of DATABASE_URL has no store. parley start makes one.');
    // A command waits for nobody: processes of an earlier version may go on for hours.
    await migrate(store.connection, undefined, { waitMs: 0 });
    const opened = await openVault(db, config, (key) => db.announce(key));
    const { vault } = opened;
    const ids = createIds(systemClock, pooledRandom());
    return await run({
      ...line,
      connection: store.connection,
      opened,
      ctx: {
        caller: operatorCaller(operatorName()),
        services: { clock: systemClock, ids, vault, linkOrigin: () => config.origin ?? listenOrigin(config) },
        db,
        requestId: ids.make('request'),
      },
    });
  } finally {
    await db.close();
    await store.stop();
  }
}
