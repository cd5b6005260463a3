import { useMemo } from 'react';
import type { Client, Mention, MessageItem, User } from '@parley/client';
import { useClient } from './context.ts';
import { useConversationItem } from './conversations.ts';
import { useMembers } from './people.ts';
import { useStore } from './store.ts';

/** A user who can be mentioned, and the text of the mention. */
export interface Suggestion {
  mention: Mention;
  /** The name, without `@`. */
  name: string;
}

const noUsers: ReadonlyMap<string, User> = new Map();
const mostShown = 6;
const maxQuery = 40;

/** What was typed between the character and the caret, if the character begins the word there. */
export function wordBegun(text: string, caret: number, character: string): string | null {
  const word = /(?:^|[\s(])([^\s(]*)$/.exec(text.slice(Math.max(0, caret - maxQuery - 20), caret))![1]!;
  const query = word.slice(character.length);
  return word.startsWith(character) && !query.includes(character) && query.length <= maxQuery ? query : null;
}
export const mentionQuery = (text: string, caret: number): string | null => wordBegun(text, caret, '@');

const fits = (name: string, query: string): boolean =>
  name
    .toLowerCase()
    .split(/\s+/)
    .some((word) => word.startsWith(query));

/** The members whose names begin with the query; nobody while it is null. */
export function useSuggestions(id: string, query: string | null): readonly Suggestion[] {
  const client = useClient();
  const isOn = query !== null && client.features?.includes('mentions') !== false;
  const members = useMembers(isOn ? id : null);
  const item = useConversationItem(id);
  const group = item?.type === 'group';
  const all = item?.rules?.mentionEveryone === 'all';
  const users = useStore(client.users.store, noUsers);
  return useMemo(
    () => (isOn ? find(client, members, group, all, query) : []),
    [isOn, client, members, group, all, query, users],
  );
}

function find(
  client: Client,
  members: ReturnType<typeof useMembers>,
  group: boolean,
  /** Every member may mention everyone. */
  all: boolean,
  query: string,
): readonly Suggestion[] {
  const wanted = query.toLowerCase();
  const found: Suggestion[] = [];
  for (const { userId, role } of members) {
    if (userId === client.userId) {
      if (group && (all || role !== 'member') && 'everyone'.startsWith(wanted))
        found.push({ mention: { type: 'everyone' }, name: 'everyone' });
      continue;
    }
    const name = client.users.find(userId)?.name || userId;
    if (fits(name, wanted)) found.push({ mention: { type: 'user', userId }, name });
  }
  return found.sort((a, b) => a.name.localeCompare(b.name)).slice(0, mostShown);
}

/** Mentions that were chosen, and the text that stands for each. */
export type Chosen = ReadonlyMap<string, { mention: Mention; shown: string }>;

const keyOf = ({ type, userId }: Mention): string => userId ?? type;
export const choose = (chosen: Chosen, mention: Mention, shown: string): Chosen =>
  new Map(chosen).set(keyOf(mention), { mention, shown });

/** Those of a message that is being changed. */
export const chosenOf = ({ text, mentions = [] }: Pick<MessageItem, 'text' | 'mentions'>): Chosen =>
  new Map(
    mentions.map(({ offset, length, ...mention }) => [
      keyOf(mention),
      { mention, shown: offset === undefined ? '' : (text ?? '').slice(offset, offset + length!) },
    ]),
  );

/** The mentions whose text is still there, where it now stands; those that never had a place stay. */
export function placed(text: string, chosen: Chosen): Mention[] {
  const without: Mention[] = [];
  const found: (Mention & { offset: number; length: number })[] = [];
  for (const { mention, shown } of chosen.values()) {
    if (shown === '') without.push(mention);
    // A longer name may begin with a shorter one: a place is taken once.
    for (let at = shown === '' ? -1 : text.indexOf(shown); at >= 0; at = text.indexOf(shown, at + 1)) {
      const end = at + shown.length;
      if (found.some((f) => f.offset < end && at < f.offset + f.length)) continue;
      found.push({ ...mention, offset: at, length: shown.length });
      break;
    }
  }
  return [...without, ...found.sort((a, b) => a.offset - b.offset)];
}
