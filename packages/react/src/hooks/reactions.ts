import { useCallback } from 'react';
import type { Client, MessageItem, ReactionCount } from '@parley/client';
import { useParley } from './context.ts';
import { useConversation } from './open.ts';

export interface ReactionsView {
  /** By emoji, in the order of their first use. */
  counts: readonly ReactionCount[];
  /** Those of this user. */
  own: readonly string[];
  /** False where the environment has reactions off, and for messages that are not sent yet or deleted. */
  can: boolean;
  /** Sets the reaction, or takes it back if it is set. It shows at once; what is refused is taken back. */
  toggle(emoji: string): Promise<void>;
}

const noCounts: readonly ReactionCount[] = [];
const noEmoji: readonly string[] = [];

export const canReact = (client: Client, item: MessageItem): boolean =>
  item.id !== null && item.deletedAt === null && client.features?.includes('reactions') !== false;

/** The reactions to a message; renders when the message does. */
export function useReactions(item: MessageItem): ReactionsView {
  const { client } = useParley();
  const conversation = useConversation(item.conversationId);
  const { counts = noCounts, own = noEmoji } = item.reactions ?? {};
  const can = canReact(client, item);
  const toggle = useCallback(
    async (emoji: string): Promise<void> => {
      if (!conversation || item.id === null) return;
      await (own.includes(emoji) ? conversation.unreact(item.id, emoji) : conversation.react(item.id, emoji));
    },
    [conversation, item.id, own],
  );
  return { counts, own, can, toggle };
}
