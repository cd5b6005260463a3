import { readdir, readFile } from 'node:fs/promises';
import type { Db, Queryable } from './db.ts';

const directory = new URL('../../../migrations/', import.meta.url);
/** Any constant: all processes of this product ask for the same lock. */
const lockKey = 7_041_885;

interface Migration {
  version: number;
  name: string;
  sql: string;
}

async function migrations(): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((f) => /^\d{4}_.*\.sql$/.test(f)).sort();
  return Promise.all(
    files.map(async (name) => ({
      version: Number(name.slice(0, 4)),
      name,
      sql: await readFile(new URL(name, directory), 'utf8'),
    })),
  );
}

const appliedVersions = async (db: Queryable): Promise<number[]> =>
  (await db.query<{ version: number }>('SELECT version FROM schema_migrations ORDER BY version')).map(
    (r) => r.version,
  );

/** Forward only, each file in one transaction, all under an advisory lock. */
export async function migrate(db: Db): Promise<string[]> {
  const all = await migrations();
  return db.tx(async (tx) => {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [lockKey]);
    await tx.query(
      'CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())',
    );
    const applied = new Set(await appliedVersions(tx));
    const done: string[] = [];
    for (const migration of all) {
      if (applied.has(migration.version)) continue;
      await tx.script(migration.sql);
      await tx.query('INSERT INTO schema_migrations (version, name) VALUES ($1, $2)', [
        migration.version,
        migration.name,
      ]);
      done.push(migration.name);
    }
    return done;
  });
}

/** True when every migration of this program is applied. A newer store is fine: changes are additive. */
export function migrationCheck(db: Queryable): () => Promise<boolean> {
  let expected: number[] | undefined;
  return async () => {
    expected ??= (await migrations()).map((m) => m.version);
    const applied = new Set(await appliedVersions(db));
    return expected.every((version) => applied.has(version));
  };
}
