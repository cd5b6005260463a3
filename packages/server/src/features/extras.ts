import type { Poll } from '@parley/protocol';

/**
 * What extensions keep with a message: JSON in `messages.extras`, null for a plain message. Users in it are numbers, so
 * that an erasure, which renames one row, renames them here too.
 */
export interface Extras {
  poll?: Poll;
}

export const parseExtras = (text: string | null): Extras =>
  text === null ? {} : (JSON.parse(text) as Extras);

/** Null if there is nothing to keep. */
export const storeExtras = (extras: Extras): string | null =>
  Object.keys(extras).length === 0 ? null : JSON.stringify(extras);
