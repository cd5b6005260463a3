import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { readVault } from '../../features/accounts/master-key.ts';
import type { Logger } from '../../platform/logging.ts';
import { PgDb } from '../../platform/postgres/db.ts';
import { migrationCheck } from '../../platform/postgres/migrate.ts';
import { attachStore } from '../../platform/postgres/store.ts';
import { unreachable } from '../../platform/postgres/reach.ts';
import { connectRedis } from '../../platform/redis.ts';
import { version } from '../../platform/version.ts';
import { aboutStore, storeExists } from '../sql.ts';
import { requireDataDirectory } from '../store.ts';
import { ok, problem, warning } from './finding.ts';
import type { Finding } from './finding.ts';

/** What can be seen in PostgreSQL and Redis. Nothing is changed in either. */

const oldestPostgres = 150_000;
const [lateMs, wrongMs] = [2_000, 60_000];

export async function lookAtStore(config: Config, logger: Logger, now: () => number): Promise<Finding[]> {
  try {
    await requireDataDirectory(config);
  } catch (error) {
    return [
      problem(
        'store',
        (error as Error).message.split(' Set ')[0]!,
        'Set CHAT_DATA_DIR to the data directory of the service; where there is none yet, parley start makes one.',
      ),
    ];
  }
  let store: Awaited<ReturnType<typeof attachStore>>;
  try {
    store = await attachStore(config, logger);
  } catch (error) {
    return [
      problem('store', (error as Error).message, 'Correct this first: nothing works without the store.'),
    ];
  }
  const db = new PgDb(store.connection, { max: 1, onError: () => undefined });
  try {
    if (!(await storeExists(db)))
      return [problem('store', 'The database has no store yet.', 'parley start makes one.')];
    return [await lookAtTables(db), await lookAtKey(db, config), ...(await lookAtFacts(db, now))];
  } catch (error) {
    const why = unreachable(store.connection, (error as Error).cause ?? error);
    return [problem('store', why.message, 'Start PostgreSQL, or correct DATABASE_URL.')];
  } finally {
    await db.close();
    await store.stop();
  }
}

async function lookAtTables(db: PgDb): Promise<Finding> {
  const wrong = await migrationCheck(db)();
  if (wrong === null) return ok('store', 'reached, and its schema is that of this program');
  return warning(
    'store',
    `${wrong}.`,
    'The next start of this version migrates the store; if the store is newer, start the newer version.',
  );
}

async function lookAtFacts(db: PgDb, now: () => number): Promise<Finding[]> {
  const before = now();
  const about = await aboutStore(db);
  const off = Math.max(0, before - about.nowMs, about.nowMs - now());
  const said = `the store's clock differs by ${(off / 1_000).toFixed(1)} s from this machine's`;
  const clock =
    off > wrongMs
      ? problem('clock', said, 'Set both clocks (NTP): tokens and webhooks expire by them.')
      : off > lateMs
        ? warning('clock', said, 'Set both clocks (NTP).')
        : ok('clock', said);
  const others = [...new Set(about.programs.map((name) => /^parley (\S+)/.exec(name)?.[1] ?? 'unknown'))];
  const versions = `Parley ${version}, Node ${process.versions.node}, PostgreSQL ${about.version}`;
  if (about.versionNumber < oldestPostgres)
    return [clock, problem('versions', versions, 'Use PostgreSQL 15 or newer.')];
  if (others.some((name) => name !== version))
    return [
      clock,
      warning(
        'versions',
        `${versions}; processes of ${others.join(', ')} are connected`,
        'Finish the upgrade: start every process with one version.',
      ),
    ];
  return [clock, ok('versions', versions)];
}

async function lookAtKey(db: PgDb, config: Config): Promise<Finding> {
  try {
    const { fingerprint, record, keys } = await readVault(db, config);
    const older = record.keys.filter((name) => name !== fingerprint);
    if (older.length > 0)
      return warning(
        'key',
        `values may be sealed with the keys ${record.keys.join(', ')}; this process seals with ${fingerprint}`,
        'A rotation is under way: go on with docs/operations/master-key.md.',
      );
    if (keys.others.length > 0)
      return warning(
        'key',
        `every value is sealed with the key ${fingerprint}, and another key is given too`,
        'Before a rotation: go on with docs/operations/master-key.md. After one: remove CHAT_MASTER_KEY_PREVIOUS and CHAT_MASTER_KEY_NEXT.',
      );
    return ok('key', `the master key ${fingerprint} opens the store`);
  } catch (error) {
    return problem('key', (error as Error).message, 'See docs/operations/master-key.md.');
  }
}

const redisMs = 3_000;

export async function lookAtRedis(config: Config, logger: Logger): Promise<Finding> {
  if (config.redisUrl === undefined) return ok('redis', 'not used: this is the only process');
  try {
    const connection = connectRedis(config.redisUrl, logger);
    try {
      if (await connection.ready(redisMs)) return ok('redis', 'answers');
    } finally {
      await connection.close();
    }
  } catch (error) {
    return problem('redis', (error as Error).message, 'Correct REDIS_URL.');
  }
  return problem(
    'redis',
    'Redis does not answer.',
    'Start it, or correct REDIS_URL. Until then each process serves alone: events reach other nodes late.',
  );
}

/** The data directory of an embedded store must be its owner's alone. */
export async function lookAtDirectory({ dataDir, databaseUrl }: Config): Promise<Finding> {
  const path = resolve(dataDir);
  const found = await stat(path).catch(() => null);
  if (!found)
    return databaseUrl === undefined
      ? problem('data directory', `${path} does not exist.`, 'Set CHAT_DATA_DIR, or run parley start.')
      : ok('data directory', `${path} does not exist, and is not needed`);
  if (found.mode & 0o077) return warning('data directory', `others may enter ${path}.`, `chmod 700 ${path}`);
  const key = await stat(join(path, 'master.key')).catch(() => null);
  if (key && key.mode & 0o077)
    return problem(
      'data directory',
      'others may read master.key.',
      `chmod 600 ${join(path, 'master.key')}; then think of rotating it (docs/operations/master-key.md).`,
    );
  return ok('data directory', path);
}
