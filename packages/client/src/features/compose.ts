import type { Draft } from '../outbox/storage.ts';
import type { Mention } from '../types.ts';

/** Builds a text piece by piece and records the position of each mention. */
export interface Composition {
  text(text: string): Composition;
  /** Adds `@` and the name, or the `shown` text. A user is mentioned once; a second time it is text alone. */
  mention(user: { id: string; name?: string | null }, shown?: string): Composition;
  /** All members, or the members who are online; for owners and moderators. */
  mentionAll(whom?: 'everyone' | 'here', shown?: string): Composition;
  toDraft(): Draft & { text: string; mentions: Mention[] };
}

/** For `send`: `compose().text('Hi ').mention(user).toDraft()`. */
export function compose(): Composition {
  let text = '';
  const mentions: Mention[] = [];
  const add = (mention: Mention, shown: string): Composition => {
    const known = mentions.some((m) =>
      m.type === 'user' ? m.userId === mention.userId : mention.type !== 'user',
    );
    if (!known) mentions.push({ ...mention, offset: text.length, length: shown.length });
    return composition.text(shown);
  };
  const composition: Composition = {
    text(more) {
      text += more;
      return composition;
    },
    mention: ({ id, name }, shown = `@${name ?? id}`) => add({ type: 'user', userId: id }, shown),
    mentionAll: (type = 'everyone', shown = `@${type}`) => add({ type }, shown),
    toDraft: () => ({ text, mentions: mentions.map((m) => ({ ...m })) }),
  };
  return composition;
}
