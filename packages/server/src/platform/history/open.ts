import type { History, Migrated } from './port.ts';
import type { HistoryDeps } from './shared.ts';
import { parseSource, parseTarget, TargetError } from './target.ts';
import type { HistorySource } from './target.ts';

/** Loaded when first used: each driver takes some ten megabytes. */
const engines = {
  http: () => import('./http.ts'),
  postgres: () => import('./postgres.ts'),
  mysql: () => import('./mysql.ts'),
  mongodb: () => import('./mongodb.ts'),
};

/** Throws TargetError if the URL is invalid, HistoryError if the database cannot be reached. */
export async function openHistory(source: HistorySource, deps: HistoryDeps): Promise<History> {
  const target = parseSource(source);
  const { engine } = target;
  if (engine === 'http') return (await engines.http()).openHttp(target, deps, source.secrets!);
  if (engine === 'postgres') return (await engines.postgres()).openPostgres(target, deps);
  if (engine === 'mysql') return (await engines.mysql()).openMysql(target, deps);
  return (await engines.mongodb()).openMongodb(target, deps);
}

export async function migrateHistory(source: HistorySource, deps: HistoryDeps): Promise<Migrated> {
  const target = parseTarget(source.url, source);
  const { engine } = target;
  if (engine === 'http')
    throw new TargetError('An http endpoint keeps its own tables: there is nothing to migrate.');
  const migrate =
    engine === 'postgres'
      ? (await import('./postgres-migrate.ts')).migratePostgres
      : engine === 'mysql'
        ? (await engines.mysql()).migrateMysql
        : (await engines.mongodb()).migrateMongodb;
  return migrate(target, deps, source.url);
}
