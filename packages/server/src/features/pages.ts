import { ApiError, limits } from '@parley/protocol';

export const pageLimit = (limit: number | undefined): number => limit ?? limits.pageDefault;

/** Cursors are opaque to callers: JSON in base64url, checked by the caller's guard. */
export const encodeCursor = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url');

export function decodeCursor<T>(cursor: string, isValid: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (isValid(value)) return value;
  } catch {
    // falls through to the refusal
  }
  throw new ApiError('invalid_request', { param: 'cursor', message: 'The cursor is not one of this list.' });
}

export const isString = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 200 && !value.includes('\0');

/** Rows were read one past the page: says what the page is and whether more follow. */
export function cut<T>(rows: T[], limit: number): { page: T[]; more: boolean } {
  return { page: rows.slice(0, limit), more: rows.length > limit };
}

/** A page by a text key that never changes. */
export function keyPage<R, T>(rows: R[], limit: number, key: (row: R) => string, view: (row: R) => T) {
  const { page, more } = cut(rows, limit);
  return { data: page.map(view), nextCursor: more ? encodeCursor(key(page.at(-1)!)) : null };
}
