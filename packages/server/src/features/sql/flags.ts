import { mentionsFlag } from '../../log/unread/sql/counters.ts';

/**
 * Bits of `conversations.flags`: what extensions a conversation has. Readers look into the table of an extension only
 * where its bit is set, so that conversations without it cost nothing. A bit is never taken away, except those that an
 * append looks at (log/sql/guards.ts), and `noReactions`, which is the rule that users react to nothing.
 */
export const flags = { reactions: 1, mentions: mentionsFlag, pins: 8, noReactions: 8192 } as const;

export const hasReactions = (conversation: { flags: number }): boolean =>
  (conversation.flags & flags.reactions) !== 0;

export const hasPins = (conversation: { flags: number }): boolean => (conversation.flags & flags.pins) !== 0;
