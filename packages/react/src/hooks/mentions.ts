import { useCallback, useMemo } from 'react';
import type { MentionsSnapshot, NotificationLevel } from '@parley/client';
import { useClient } from './context.ts';
import { useConversationItem } from './conversations.ts';
import { useConversation } from './open.ts';
import { useStore } from './store.ts';

const none: MentionsSnapshot = { items: [], hasMore: false, status: 'loading' };

export interface MentionsView extends MentionsSnapshot {
  loadMore(): Promise<void>;
}

/** The messages that name this user, newest first; loaded when the first component asks. */
export function useMentions(): MentionsView {
  const { mentions } = useClient();
  const snapshot = useStore(mentions, none);
  return useMemo(() => ({ ...snapshot, loadMore: mentions.loadMore }), [snapshot, mentions]);
}

export interface NotificationLevelView {
  /** Undefined until the conversation's row is known. */
  level: NotificationLevel | undefined;
  /** When `none` ends by itself, if it does. */
  until: string | null;
  set(level: NotificationLevel, options?: { until?: Date | string }): Promise<void>;
}

/** Which messages of a conversation this user is pushed; renders when that changes. */
export function useNotificationLevel(id: string): NotificationLevelView {
  const item = useConversationItem(id);
  const conversation = useConversation(id);
  const set = useCallback(
    async (level: NotificationLevel, options?: { until?: Date | string }) =>
      conversation?.setLevel(level, options),
    [conversation],
  );
  const { level, mutedUntil: until = null } = item ?? {};
  return useMemo(() => ({ level, until, set }), [level, until, set]);
}
