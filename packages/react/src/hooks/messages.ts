import { useMemo, useSyncExternalStore } from 'react';
import type { Conversation, MessageItem, MessagesSnapshot } from '@parley/client';
import { useConversation } from './open.ts';
import { nothing } from './store.ts';

const loading: MessagesSnapshot = { items: [], hasOlder: false, hasNewer: false, status: 'loading' };
const initial = (): MessagesSnapshot => loading;

interface Known {
  source: MessagesSnapshot;
  snapshot: MessagesSnapshot;
  byKey: ReadonlyMap<string, MessageItem>;
}
const knownOf = new WeakMap<Conversation, Known>();

/** The client creates new objects for pending messages with every snapshot; here an unchanged message stays the same object. */
function read(conversation: Conversation): Known {
  const before = knownOf.get(conversation);
  const source = conversation.messages.get();
  if (before?.source === source) return before;
  const items = source.items.map((item) => {
    const old = before?.byKey.get(item.key);
    return old && (old === item || JSON.stringify(old) === JSON.stringify(item)) ? old : item;
  });
  const now = {
    source,
    snapshot: { ...source, items },
    byKey: new Map(items.map((item) => [item.key, item])),
  };
  knownOf.set(conversation, now);
  return now;
}

export interface MessagesView extends MessagesSnapshot {
  loadOlder(): Promise<void>;
  loadNewer(): Promise<void>;
  /** Moves the window to around a seq. */
  jumpTo(seq: number): Promise<void>;
  jumpToLatest(): Promise<void>;
}

const idle = (): Promise<void> => Promise.resolve();

/** The messages of a conversation, oldest first, with those on their way at the end. */
export function useMessages(id: string | null | undefined): MessagesView {
  const conversation = useConversation(id);
  const snapshot = useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () => (conversation ? read(conversation).snapshot : loading),
    initial,
  );
  return useMemo(
    () => ({
      ...snapshot,
      loadOlder: conversation ? () => conversation.loadOlder() : idle,
      loadNewer: conversation ? () => conversation.loadNewer() : idle,
      jumpTo: conversation ? (seq: number) => conversation.jumpTo(seq) : idle,
      jumpToLatest: conversation ? () => conversation.jumpToLatest() : idle,
    }),
    [snapshot, conversation],
  );
}

/** Something of the messages; renders only when that changes. */
function useRead<T>(id: string | null | undefined, get: (of: Known) => T, initial: T): T {
  const conversation = useConversation(id);
  return useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () => (conversation ? get(read(conversation)) : initial),
    () => initial,
  );
}

/** One message by its `key`; renders only when this message changes. */
export const useMessage = (id: string | null | undefined, key: string): MessageItem | undefined =>
  useRead(id, ({ byKey }) => byKey.get(key), undefined);

const find = ({ snapshot }: Known, messageId: string | null): MessageItem | undefined =>
  messageId === null ? undefined : snapshot.items.find((item) => item.id === messageId);

/** A message by its id, if it is in the window: what a reply refers to. */
export const useMessageById = (
  id: string | null | undefined,
  messageId: string | null,
): MessageItem | undefined => useRead(id, (known) => find(known, messageId), undefined);

/** The sender of a message, if it is in the window; does not render with the message. */
export const useSenderOf = (id: string, messageId: string | null): string | null | undefined =>
  useRead(id, (known) => find(known, messageId)?.senderId, undefined);

/** How many messages of this conversation wait to be sent. */
export const useWaiting = (id: string | null | undefined): number =>
  useRead(id, ({ snapshot }) => snapshot.items.filter((item) => item.status === 'pending').length, 0);

/** Whether the messages are loading, ready, or this user was removed; renders only when that changes. */
export const useStatus = (id: string | null | undefined): MessagesSnapshot['status'] =>
  useRead<MessagesSnapshot['status']>(id, ({ source }) => source.status, 'loading');
