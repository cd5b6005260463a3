import type { Mention, Poll } from '@parley/protocol';

/**
 * What extensions keep with a message: JSON in `messages.extras`, null for a plain message. Users in it are numbers, so
 * that an erasure, which renames one row, renames them here too.
 */
export interface Extras {
  mentions?: StoredMention[];
  poll?: Poll;
}

/** A user's number or all together, and the range in the text, if it has one. */
export type StoredMention = [
  who: number | Exclude<Mention['type'], 'user'>,
  ...range: [] | [offset: number, length: number],
];

export const parseExtras = (text: string | null): Extras =>
  text === null ? {} : (JSON.parse(text) as Extras);

/** Null if there is nothing to keep. */
export function storeExtras({ mentions, ...rest }: Extras): string | null {
  const extras = { ...rest, ...(mentions?.length ? { mentions } : {}) };
  return Object.keys(extras).length === 0 ? null : JSON.stringify(extras);
}

/** How the message mentions the user; null if it does not. */
export function mentionOf(extras: string | null, user: number): Mention['type'] | null {
  const all = parseExtras(extras).mentions?.map(([who]) => who) ?? [];
  if (all.includes(user)) return 'user';
  return all.find((who) => typeof who === 'string') ?? null;
}
