import { limits } from '@parley/protocol';
import { invalid } from '../platform/api-errors.ts';

export const pageLimit = (limit: number | undefined): number => limit ?? limits.pageDefault;

/** A cursor is JSON in base64url, which callers must not interpret. A guard of the list checks it when it comes back. */
export const encodeCursor = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url');

export function decodeCursor<T>(cursor: string, isValid: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (isValid(value)) return value;
  } catch {
    // Unreadable text is refused below.
  }
  throw invalid('cursor', 'The cursor is not one of this list.');
}

export const isString = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 200 && !value.includes('\0');

export const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);
/** Fits into a column of 32 bits. */
export const isShortInteger = (value: unknown): value is number =>
  isInteger(value) && Math.abs(value) < 2 ** 31;

const time = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** A valid time of this century: PostgreSQL refuses a 30th of February, and an activity step has 32 bits. */
export const isTime = (v: unknown): v is string =>
  typeof v === 'string' && time.test(v) && Date.parse(v) >= 0 && new Date(v).toISOString() === v;

/** The place of a row by its time, and the number of what it is about. */
export type TimedPlace = [at: string, no: number];
export const isTimedPlace = (value: unknown): value is TimedPlace =>
  Array.isArray(value) && value.length === 2 && isTime(value[0]) && isInteger(value[1]);

/** Splits rows, which were read one past the page, into the page and whether more follow. */
export function cut<T>(rows: T[], limit: number): { page: T[]; more: boolean } {
  return { page: rows.slice(0, limit), more: rows.length > limit };
}

/** How many of the first items fit into `limits.pageBytes` of JSON; at least one. */
export function fitting(items: readonly unknown[]): number {
  let bytes = 0;
  for (const [i, item] of items.entries()) {
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (bytes > limits.pageBytes && i > 0) return i;
  }
  return items.length;
}

/** Returns the page of rows, which were read one past it, as callers see them. It ends early if it would be too large. */
export function shown<R extends object, T>(
  rows: R[],
  limit: number,
  view: (row: R) => T,
): { data: T[]; more: boolean } {
  const page = rows.slice(0, limit).map(view);
  const data = page.slice(0, fitting(page));
  return { data, more: data.length < rows.length };
}

/** A page whose cursor is a key that never changes. */
export function keyPage<R extends object, T>(
  rows: R[],
  limit: number,
  key: (row: R) => unknown,
  view: (row: R) => T,
): { data: T[]; nextCursor: string | null } {
  const { data, more } = shown(rows, limit, view);
  return { data, nextCursor: more ? encodeCursor(key(rows[data.length - 1]!)) : null };
}

/**
 * The page of a list that is asked for.
 * @param read reads so many rows after a place, or from the beginning.
 * @param place of a row, which never changes: its cursor.
 */
export async function listPage<R extends object, P, T>(
  asked: { limit?: number; cursor?: string },
  isPlace: (value: unknown) => value is P,
  read: (after: P | null, most: number) => Promise<R[]>,
  place: (row: R) => unknown,
  view: (row: R) => T,
): Promise<{ data: T[]; nextCursor: string | null }> {
  const limit = pageLimit(asked.limit);
  const after = asked.cursor === undefined ? null : decodeCursor(asked.cursor, isPlace);
  return keyPage(await read(after, limit + 1), limit, place, view);
}
