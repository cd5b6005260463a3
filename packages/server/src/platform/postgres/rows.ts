import type { Queryable } from './db.ts';

/** The forms in which most statements are asked and give their answer. */

/** The row that a statement finds or changes, if it does. */
export async function firstRow<R extends object>(
  db: Queryable,
  sql: string,
  values?: unknown[],
): Promise<R | undefined> {
  const [row] = await db.query<R>(sql, values);
  return row;
}

/** The row of a statement that always gives one. */
export const oneRow = async <R extends object>(db: Queryable, sql: string, values?: unknown[]): Promise<R> =>
  (await firstRow<R>(db, sql, values))!;

/** Whether a statement finds or changes a row. */
export const anyRow = async (db: Queryable, sql: string, values?: unknown[]): Promise<boolean> =>
  (await db.query(sql, values)).length > 0;

/** The values of a statement that gives one column. */
export async function column<T>(db: Queryable, sql: string, values?: unknown[]): Promise<T[]> {
  const rows = await db.query<Record<string, T>>(sql, values);
  return rows.map((row) => Object.values(row)[0]!);
}

/** The first of them, if there is one. */
export const firstValue = async <T>(db: Queryable, sql: string, values?: unknown[]): Promise<T | undefined> =>
  (await column<T>(db, sql, values))[0];

/** The value of a statement that always gives one. */
export const oneValue = async <T>(db: Queryable, sql: string, values?: unknown[]): Promise<T> =>
  (await column<T>(db, sql, values))[0]!;

/** The values of these fields of a row, as parameters. */
export const valuesOf = <T>(row: T, ...fields: (keyof T)[]): unknown[] => fields.map((field) => row[field]);

/** The values of each of these fields of the rows: a parameter each, for `unnest`. */
export const arraysOf = <T>(rows: readonly T[], ...fields: (keyof T)[]): unknown[][] =>
  fields.map((field) => rows.map((row) => row[field]));
