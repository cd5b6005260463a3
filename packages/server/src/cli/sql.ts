import type { Queryable } from '../platform/postgres/db.ts';
import { oneRow, oneValue } from '../platform/postgres/rows.ts';
import { programPattern } from '../platform/postgres/program.ts';

/** True if a service has started on this database. */
export const storeExists = (db: Queryable): Promise<boolean> =>
  oneValue(db, `SELECT to_regclass('schema_migrations') IS NOT NULL AS found`);

export interface AboutStore {
  version: string;
  versionNumber: number;
  nowMs: number;
  /** What the connections of serving processes are called. */
  programs: string[];
}

export const aboutStore = (db: Queryable): Promise<AboutStore> =>
  oneRow(
    db,
    `SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
       current_setting('server_version_num')::int AS "versionNumber",
       (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
       coalesce((SELECT array_agg(DISTINCT application_name) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name ~ $1), '{}') AS programs`,
    [programPattern],
  );
