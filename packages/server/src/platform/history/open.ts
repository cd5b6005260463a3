import { openHttp } from './http.ts';
import { migrateMongodb, openMongodb } from './mongodb.ts';
import { migrateMysql, openMysql } from './mysql.ts';
import type { Engine, History, HistoryEngine, Migrated } from './port.ts';
import { migratePostgres, openPostgres } from './postgres.ts';
import type { HistoryDeps } from './shared.ts';
import { parseSource, parseTarget, TargetError } from './target.ts';
import type { HistorySource } from './target.ts';

/** Throws TargetError if the URL is invalid, HistoryError if the database cannot be reached. */
export async function openHistory(source: HistorySource, deps: HistoryDeps): Promise<History> {
  const engine = await openEngine(source, deps);
  return { ...engine, write: (records, options) => engine.prepare(records, options)() };
}

async function openEngine(source: HistorySource, deps: HistoryDeps): Promise<Engine> {
  const target = parseSource(source);
  if (target.engine === 'http') return openHttp(target, deps, source.secrets!);
  if (target.engine === 'postgres') return openPostgres(target, deps);
  return target.engine === 'mysql' ? openMysql(target, deps) : openMongodb(target, deps);
}

/** Uses an admin's URL, which is not stored anywhere. */
export async function migrateHistory(
  source: HistorySource,
  deps: HistoryDeps,
): Promise<Migrated & { engine: HistoryEngine }> {
  const target = parseTarget(source.url, source);
  const { engine } = target;
  if (engine === 'http')
    throw new TargetError('An http endpoint keeps its own tables: there is nothing to migrate.');
  const migrate =
    engine === 'postgres' ? migratePostgres : engine === 'mysql' ? migrateMysql : migrateMongodb;
  return { ...(await migrate(target, deps, source.url)), engine };
}
