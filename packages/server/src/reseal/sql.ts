import type { Queryable } from '../platform/postgres/db.ts';
import { programPattern } from '../platform/postgres/program.ts';
import type { SealedTable } from './columns.ts';

/** One portion of a table in the order of its key, from after the given key. */
export function portion(
  db: Queryable,
  sealed: SealedTable,
  after: readonly unknown[] | undefined,
  limit: number,
): Promise<Record<string, unknown>[]> {
  const { table, key, columns, needs = [], form, only } = sealed;
  const place = Object.keys(key)
    .map((column) => `t.${column}`)
    .join(', ');
  const values = columns.map((column) =>
    form === 'json' ? `t.${column} #>> '{}' AS ${column}` : `t.${column}`,
  );
  const from = Object.values(key)
    .map((type, i) => `$${i + 2}::${type}`)
    .join(', ');
  const conditions = [...(after ? [`(${place}) > (${from})`] : []), ...(only ? [only] : [])];
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  return db.query(
    `SELECT ${[place, ...values, ...needs].join(', ')} FROM ${table} t ${where} ORDER BY ${place} LIMIT $1`,
    after ? [limit, ...after] : [limit],
  );
}

/** Replaces one value, unless it has changed meanwhile: then a process has sealed it with the new key. */
export async function replace(
  db: Queryable,
  sealed: SealedTable,
  at: { row: Record<string, unknown>; column: string },
  [from, to]: readonly [unknown, unknown],
): Promise<boolean> {
  const { table, key, form } = sealed;
  const value = (n: number): string => (form === 'json' ? `to_jsonb($${n}::text)` : `$${n}::bytea`);
  const place = Object.entries(key)
    .map(([column, type], i) => `${column} = $${i + 3}::${type}`)
    .join(' AND ');
  const rows = await db.query(
    `UPDATE ${table} SET ${at.column} = ${value(2)} WHERE ${place} AND ${at.column} = ${value(1)} RETURNING 1`,
    [from, to, ...Object.keys(key).map((column) => at.row[column])],
  );
  return rows.length > 0;
}

/** What the connections of serving processes are called, with their number. */
export const programs = (db: Queryable): Promise<{ name: string; count: number }[]> =>
  db.query(
    `SELECT application_name AS name, count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND application_name ~ $1 GROUP BY 1 ORDER BY 1`,
    [programPattern],
  );
