import type { Queryable } from './db.ts';

/** Answers of statements that return one row, or one column. */

/** The row; undefined if there is none. */
export const maybeRow = async <R extends object>(
  db: Queryable,
  sql: string,
  values?: unknown[],
): Promise<R | undefined> => (await db.query<R>(sql, values))[0];

/** The row of a statement that always returns one. */
export const oneRow = async <R extends object>(db: Queryable, sql: string, values?: unknown[]): Promise<R> =>
  (await maybeRow<R>(db, sql, values))!;

/** The only column of that row. */
export const oneValue = async <T>(db: Queryable, sql: string, values?: unknown[]): Promise<T> =>
  Object.values(await oneRow<Record<string, T>>(db, sql, values))[0]!;

/** Whether the statement returns a row. */
export const hasRow = async (db: Queryable, sql: string, values?: unknown[]): Promise<boolean> =>
  (await maybeRow(db, sql, values)) !== undefined;

/** The only column of all rows. */
export const allValues = async <T>(db: Queryable, sql: string, values?: unknown[]): Promise<T[]> =>
  (await db.query<Record<string, T>>(sql, values)).map((row) => Object.values(row)[0]!);
