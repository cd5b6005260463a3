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
const known = new WeakMap<Conversation, Known>();

/** The client makes messages on their way anew with every snapshot; here one that did not change stays the same object. */
function read(conversation: Conversation): Known {
  const before = known.get(conversation);
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
  known.set(conversation, now);
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

const missing = (): undefined => undefined;

/** One message by its `key`; renders only when this message changes. */
export function useMessage(id: string | null | undefined, key: string): MessageItem | undefined {
  const conversation = useConversation(id);
  return useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () => (conversation ? read(conversation).byKey.get(key) : undefined),
    missing,
  );
}

/** A message by its id, if it is in the window: what a reply refers to. */
export function useMessageById(
  id: string | null | undefined,
  messageId: string | null,
): MessageItem | undefined {
  const conversation = useConversation(id);
  return useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () =>
      conversation && messageId !== null
        ? read(conversation).snapshot.items.find((item) => item.id === messageId)
        : undefined,
    missing,
  );
}

/** How many messages of this conversation wait to be sent. */
export function useWaiting(id: string | null | undefined): number {
  const conversation = useConversation(id);
  return useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () =>
      conversation ? read(conversation).snapshot.items.filter((item) => item.status === 'pending').length : 0,
    () => 0,
  );
}

/** Whether the messages are loading, ready, or this user was removed; renders only when that changes. */
export function useStatus(id: string | null | undefined): MessagesSnapshot['status'] {
  const conversation = useConversation(id);
  return useSyncExternalStore(
    conversation?.messages.subscribe ?? nothing,
    () => conversation?.messages.get().status ?? 'loading',
    () => 'loading',
  );
}
