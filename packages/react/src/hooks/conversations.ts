import { useCallback, useMemo, useSyncExternalStore } from 'react';
import type { ConversationListItem, ConversationListSnapshot } from '@parley/client';
import { useClient } from './context.ts';
import { shallowEqual, useStable, useStore } from './store.ts';

const empty: ConversationListSnapshot = {
  items: [],
  unreadTotal: 0,
  mentionUnreadTotal: 0,
  hasMore: false,
};
const zero = (): number => 0;
const unknown = (): undefined => undefined;

export interface ConversationsView extends ConversationListSnapshot {
  loadMore(): Promise<void>;
}

/** The user's conversations, by last activity. */
export function useConversations(): ConversationsView {
  const { conversations } = useClient();
  const snapshot = useStore(conversations, empty);
  return useMemo(() => ({ ...snapshot, loadMore: conversations.loadMore }), [snapshot, conversations]);
}

/** Unread messages over all conversations; changes only with the number. */
export function useUnreadTotal(): number {
  const { conversations } = useClient();
  return useSyncExternalStore(conversations.subscribe, () => conversations.get().unreadTotal, zero);
}

/** The row of one conversation: name, unread, last message; undefined if the list does not show it. */
export function useConversationItem(id: string | null | undefined): ConversationListItem | undefined {
  const { conversations } = useClient();
  const stable = useStable<ConversationListItem | undefined>((a, b) =>
    a && b ? shallowEqual(a, b) : a === b,
  );
  const get = useCallback(
    () => conversations.get().items.find((item) => item.id === id),
    [conversations, id],
  );
  return useSyncExternalStore(conversations.subscribe, () => stable(get()), unknown);
}
