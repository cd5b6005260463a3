import { createHash } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { version as programVersion } from '../version.ts';
import type { ConnectionSettings, Queryable } from './db.ts';
import { beginSession, sessionMs, sessionSql } from './db.ts';
import { StoreError, unreachable } from './reach.ts';
import { programPattern } from './program.ts';

/**
 * Brings a store to the schema that this program needs. There are three kinds of SQL files:
 *
 * - `schema.sql` has the tables of a new store, as the migrations that it names would make them (`npm run schema`). These
 *   migrations are recorded as applied.
 * - `migrations/0001_….sql` change tables. Each is applied once, in its own transaction, and its checksum is recorded: an
 *   applied file is never edited. A file whose first line is `-- no transaction` runs outside of one, statement by statement
 *   (for CREATE INDEX CONCURRENTLY); each statement ends with a semicolon at the end of a line and can be run again. A file with
 *   the line `-- runs beside earlier versions` may be applied while they serve; all others wait until those have ended, and a
 *   program that does not know such a file refuses the store.
 * - `src/…/sql/*.sql` hold the functions and triggers (CREATE OR REPLACE); a module `*.sql.ts` exports such a text as `sql`. All of them are
 *   applied again, in one transaction after the
 *   migrations, whenever the text of any changes. A migration drops a function whose parameters or result change.
 */

export interface SqlFile {
  name: string;
  sql: string;
}

export interface Schema {
  /** `schema.sql`. Without it a new store is made by the migrations. */
  tables?: SqlFile;
  migrations: SqlFile[];
  functions: SqlFile[];
}

const root = new URL('../../../', import.meta.url);
const noTransaction = '-- no transaction';
const besideEarlier = /^-- runs beside earlier versions$/m;
/** An arbitrary constant: all processes of this product ask for the same lock. */
const lockKey = 7_041_885;
const lockRetryMs = 100;
/** How often two sessions behind a pooler are compared: with other traffic once may not show that they are shared. */
const poolerRounds = 5;
const olderRetryMs = 500;
/** Milliseconds for which a start waits for processes of earlier versions to end. */
const olderWaitMs = 60_000;

/** A module says its SQL. In the npm package it is JavaScript. */
const readSql = async (file: URL): Promise<string> =>
  file.pathname.endsWith('.sql')
    ? readFile(file, 'utf8')
    : ((await import(file.href)) as { sql: string }).sql;

export async function readSchema(): Promise<Schema> {
  const files = async (pattern: string): Promise<SqlFile[]> => {
    const names = await Array.fromAsync(glob(pattern, { cwd: root }));
    return Promise.all(names.sort().map(async (name) => ({ name, sql: await readSql(new URL(name, root)) })));
  };
  const [tables] = await files('schema.sql');
  return {
    ...(tables && { tables }),
    migrations: await files('migrations/[0-9][0-9][0-9][0-9]_*.sql'),
    functions: await files('src/**/sql/*.{sql,sql.ts,sql.js}'),
  };
}

export const versionOf = (migration: SqlFile): number => Number(/(\d{4})_/.exec(migration.name)![1]);
const checksum = (files: SqlFile[]): string => {
  const hash = createHash('sha256');
  for (const { sql } of files) hash.update(sql).update('\0');
  return hash.digest('hex');
};

export interface MigrateOptions {
  /** Migrates although processes of earlier versions serve. */
  force?: boolean;
  /** Milliseconds to wait for them to end. */
  waitMs?: number;
  /** Called once if there are any. */
  onWait?: (message: string) => void;
}

/**
 * Runs on a connection of its own without time-outs, because building an index may take long. Processes that start
 * together wait for each other. Returns what was applied. Nothing is changed in a store that a newer program has migrated, nor,
 * without `force`, under processes of earlier versions that could not go on.
 */
export async function migrate(
  connection: ConnectionSettings,
  schema?: Schema,
  options: MigrateOptions = {},
): Promise<string[]> {
  const files = schema ?? (await readSchema());
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: 'parley migrations',
  });
  // A lost connection fails the running query; without a listener it would end the process.
  client.on('error', () => undefined);
  await client.connect().catch((error: unknown) => {
    throw unreachable(connection, error);
  });
  try {
    await requireOwnSessions(connection, client);
    await lock(client);
    const applied = await applyMigrations(client, files, options);
    if (await applyFunctions(client, files)) applied.push('functions');
    return applied;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const migrationSettings = { TimeZone: 'UTC', statement_timeout: '0', lock_timeout: '0' };

/**
 * Begins the session, and refuses a pooler that gives one session's statements to several servers, or one server to several
 * sessions: settings, locks, LISTEN and prepared statements would be lost or another's.
 */
async function requireOwnSessions(connection: ConnectionSettings, client: pg.Client): Promise<void> {
  const pid = await beginSession(client, sessionSql(migrationSettings));
  // PostgreSQL itself names the process when it is connected to; a pooler makes a name up.
  if (pid === (client as pg.Client & { processID: number }).processID) return;
  const other = new pg.Client({ ...connection, connectionTimeoutMillis: 10_000, query_timeout: sessionMs });
  other.on('error', () => undefined);
  try {
    await other.connect();
    const ask = sessionSql({});
    for (let i = 0; i < poolerRounds; i++)
      if ((await beginSession(other, ask)) === pid || (await beginSession(client, ask)) !== pid)
        throw new StoreError(
          'DATABASE_URL leads to a connection pooler whose connections share sessions (PgBouncer: pool_mode transaction or statement). ' +
            'Set pool_mode to session, or give the address of PostgreSQL itself.',
        );
  } finally {
    await other.end().catch(() => undefined);
  }
}

/**
 * Asks repeatedly instead of waiting inside PostgreSQL: CREATE INDEX CONCURRENTLY waits for every running statement,
 * so it would wait for the process that waits for it.
 */
async function lock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ free: boolean }>('SELECT pg_try_advisory_lock($1) AS free', [
      lockKey,
    ]);
    if (rows[0]!.free) return;
    await delay(lockRetryMs);
  }
}

async function applyMigrations(
  client: pg.Client,
  { tables, migrations }: Schema,
  options: MigrateOptions,
): Promise<string[]> {
  // Stores from before checksums were recorded get them at their first start under this program.
  await client.query(`
    CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now());
    ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS checksum text,
      ADD COLUMN IF NOT EXISTS program text, ADD COLUMN IF NOT EXISTS beside_earlier boolean NOT NULL DEFAULT false;
    CREATE TABLE IF NOT EXISTS schema_functions (checksum text PRIMARY KEY, at timestamptz NOT NULL)`);
  const { rows } = await client.query<{ version: number; checksum: string | null }>(
    'SELECT version, checksum FROM schema_migrations',
  );
  const versions = migrations.map(versionOf);
  const unknown = await client.query<Newer>(newerSql, [versions]);
  const newer = newerText(unknown.rows[0], versions);
  if (newer !== null)
    throw new Error(
      `${newer}. Start that version or a newer one, or restore a backup from before the upgrade. Nothing was changed.`,
    );
  const recorded = new Map(rows.map((r) => [r.version, r.checksum]));
  const alone = migrations.filter((m) => !recorded.has(versionOf(m)) && !besideEarlier.test(m.sql));
  if (rows.length > 0 && alone.length > 0 && !options.force)
    await untilAlone(client, versionOf(alone.at(-1)!), options);
  const done: string[] = [];
  const record = async (migration: SqlFile): Promise<void> => {
    const { name, sql } = migration;
    await client.query(
      'INSERT INTO schema_migrations (version, name, checksum, program, beside_earlier) VALUES ($1, $2, $3, $4, $5)',
      [
        versionOf(migration),
        name.split('/').at(-1),
        checksum([migration]),
        programVersion,
        besideEarlier.test(sql),
      ],
    );
  };
  if (rows.length === 0 && tables) {
    const made = madeFrom(tables, migrations);
    await transaction(client, async () => {
      await client.query(tables.sql);
      for (const migration of made) await record(migration);
    });
    for (const migration of made) recorded.set(versionOf(migration), checksum([migration]));
    done.push(tables.name);
  }
  for (const migration of migrations) {
    const version = versionOf(migration);
    const sum = checksum([migration]);
    const known = recorded.get(version);
    if (known === sum) continue;
    if (known)
      throw new Error(
        `${migration.name} was changed after it had been applied to this store (${known.slice(0, 12)} was applied, this is ` +
          `${sum.slice(0, 12)}). Put the file back as it was and make the change in a new migration.`,
      );
    if (known === null) {
      await client.query('UPDATE schema_migrations SET checksum = $2 WHERE version = $1', [version, sum]);
      continue;
    }
    if (migration.sql.startsWith(noTransaction)) {
      for (const statement of statements(migration.sql)) await client.query(statement);
      await record(migration);
    } else {
      await transaction(client, async () => {
        await client.query(migration.sql);
        await record(migration);
      });
    }
    done.push(migration.name);
  }
  return done;
}

/** The migrations that `schema.sql` names; later ones are applied to its tables. */
function madeFrom(tables: SqlFile, migrations: SqlFile[]): SqlFile[] {
  const versions = /^-- made from: (.*)$/m.exec(tables.sql)![1]!.split(' ').map(Number);
  return versions.map((version) => {
    const migration = migrations.find((m) => versionOf(m) === version);
    if (migration) return migration;
    throw new Error(`${tables.name} was made from migration ${shown(version)}, which is missing.`);
  });
}

const shown = (version: number): string => String(version).padStart(4, '0');

/** A migration that this program does not know. */
interface Newer {
  name: string;
  program: string | null;
}
const newerSql = `SELECT name, program FROM schema_migrations
  WHERE version <> ALL($1::int[]) AND NOT beside_earlier ORDER BY version DESC LIMIT 1`;
/** Says what this program does not know of the store, with both versions; null if it can work with it. */
const newerText = (unknown: Newer | undefined, known: number[]): string | null =>
  unknown === undefined
    ? null
    : `the store was migrated by Parley ${unknown.program ?? 'of another version'} (${unknown.name}), and this is ` +
      `Parley ${programVersion}, which knows migrations up to ${shown(Math.max(0, ...known))}`;

/** Waits until no process serves that knows less than migration `version`. */
async function untilAlone(client: pg.Client, version: number, options: MigrateOptions): Promise<void> {
  const { waitMs = olderWaitMs, onWait } = options;
  for (let waited = 0; ; waited += olderRetryMs) {
    const { rows } = await client.query<{ name: string; count: number }>(
      `SELECT application_name AS name, count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND application_name ~ $1
         AND coalesce(substring(application_name FROM $1)::int, 0) < $2 GROUP BY 1 ORDER BY 1`,
      [programPattern, version],
    );
    if (rows.length === 0) return;
    const older = rows.map(({ name, count }) => `${name} (connections: ${count})`).join(', ');
    const text = `processes of earlier versions use this store and cannot go on after migration ${shown(version)} of Parley ${programVersion}: ${older}`;
    if (waited >= waitMs)
      throw new Error(
        `${text}. Stop them first, or migrate all the same with --force (npm start -- --force). Nothing was changed.`,
      );
    if (waited === 0) onWait?.(`${text}; waiting for them to end`);
    await delay(olderRetryMs);
  }
}

const statements = (sql: string): string[] => sql.split(/;[ \t]*$/m).filter((s) => s.trim() !== '');

/** Functions of a newer program stay. A store is newer if it has a migration that this program does not know. */
const unknownSql = 'EXISTS (SELECT 1 FROM schema_migrations WHERE version <> ALL($2::int[]))';

async function applyFunctions(client: pg.Client, { migrations, functions }: Schema): Promise<boolean> {
  const sum = checksum(functions);
  const { rows } = await client.query<{ keep: boolean }>(
    `SELECT ${unknownSql} OR coalesce(
       (SELECT checksum FROM schema_functions ORDER BY at DESC LIMIT 1) = $1, false) AS keep`,
    [sum, migrations.map(versionOf)],
  );
  if (rows[0]!.keep) return false;
  await transaction(client, async () => {
    for (const { sql } of functions) await client.query(sql);
    await client.query(
      `INSERT INTO schema_functions (checksum, at) VALUES ($1, clock_timestamp())
       ON CONFLICT (checksum) DO UPDATE SET at = excluded.at`,
      [sum],
    );
  });
  return true;
}

async function transaction(client: pg.Client, run: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await run();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * For /readyz: null if every migration of this program is applied, its functions exist, and no newer program has changed
 * the store in a way that this one does not know; otherwise what is wrong. The files are read once.
 */
export function migrationCheck(db: Queryable): () => Promise<string | null> {
  let expected: Promise<[string, number[]]> | undefined;
  const read = async (): Promise<[string, number[]]> => {
    const { migrations, functions } = await readSchema();
    return [checksum(functions), migrations.map(versionOf)];
  };
  return async () => {
    const values = await (expected ??= read());
    const [row] = await db.query<{ current: boolean; name: string | null; program: string | null }>(
      `SELECT (SELECT count(*) FROM schema_migrations WHERE version = ANY($2::int[])) = cardinality($2::int[])
         AND (${unknownSql} OR EXISTS (SELECT 1 FROM schema_functions WHERE checksum = $1)) AS current, newer.name, newer.program
       FROM (SELECT 1) one LEFT JOIN (${newerSql.replace('$1', '$2')}) newer ON true`,
      values,
    );
    const { current, name, program } = row!;
    if (name !== null) return newerText({ name, program }, values[1]);
    return current ? null : 'migrations are not current';
  };
}
