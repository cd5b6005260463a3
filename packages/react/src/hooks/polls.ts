import { useCallback, useEffect, useMemo, useReducer } from 'react';
import type { MessageItem, Poll } from '@parley/client';
import { useParley } from './context.ts';
import { useConversation } from './open.ts';
import { useModerates } from './people.ts';

export interface PollOptionView {
  id: number;
  text: string;
  count: number;
  /** Of all votes, 0 to 1. */
  share: number;
  /** This user voted for it. */
  own: boolean;
  /** The newest three voters; none if the poll is anonymous. */
  userIds: readonly string[];
}

export interface PollView {
  /** Null if the message has none. */
  poll: Poll | null;
  options: readonly PollOptionView[];
  /** How many votes there are; a user may have several where the poll takes more than one choice. */
  total: number;
  closed: boolean;
  /** False where nobody can vote: closed, not sent yet, deleted, or off in this environment. */
  canVote: boolean;
  /** This user wrote it, or is owner or moderator, and it is open. */
  canClose: boolean;
  /** Votes for the option, or takes that back if it is chosen. It shows at once; what is refused is taken back. */
  toggle(option: number): Promise<void>;
  close(): Promise<void>;
}

/** The longest time that a timer takes. */
const longestMs = 2 ** 31 - 1;
const nobody: readonly string[] = [];
const noVotes: readonly number[] = [];

/** The poll of a message with its results; renders when the message does, and when the poll ends. */
export function usePoll(item: MessageItem): PollView {
  const { client, now } = useParley();
  const conversation = useConversation(item.conversationId);
  const [, renew] = useReducer((n: number) => n + 1, 0);
  const poll = item.deletedAt === null ? (item.poll ?? null) : null;
  const endsIn = poll?.closesAt === undefined ? Infinity : Date.parse(poll.closesAt) - now();
  const closed = poll?.closedAt !== undefined || endsIn <= 0;
  const { id } = item;
  useEffect(() => {
    if (closed || endsIn > longestMs) return;
    const timer = setTimeout(renew, endsIn);
    return () => clearTimeout(timer);
  }, [closed, endsIn]);

  const { votes, ownVotes = noVotes } = item.reactions ?? {};
  const total = votes?.reduce((sum, { count }) => sum + count, 0) ?? 0;
  const options = useMemo(
    () =>
      (poll?.options ?? []).map((option): PollOptionView => {
        const { count = 0, userIds = nobody } = votes?.find((v) => v.option === option.id) ?? {};
        const share = total === 0 ? 0 : count / total;
        return { ...option, count, share, own: ownVotes.includes(option.id), userIds };
      }),
    [poll, votes, ownVotes, total],
  );
  const open = poll !== null && !closed && id !== null && client.features?.includes('polls') !== false;
  const multiple = poll?.multiple === true;
  const toggle = useCallback(
    async (option: number): Promise<void> => {
      if (!conversation || id === null) return;
      const others = multiple ? ownVotes.filter((one) => one !== option) : [];
      await conversation.vote(id, ownVotes.includes(option) ? others : [...others, option]);
    },
    [conversation, id, ownVotes, multiple],
  );
  const close = useCallback(async (): Promise<void> => {
    if (id !== null) await conversation?.closePoll(id);
  }, [conversation, id]);
  const own = item.senderId !== null && item.senderId === client.userId;
  const moderates = useModerates(open && !own ? item.conversationId : null);
  const canClose = open && (own || moderates);
  return { poll, options, total, closed, canVote: open, canClose, toggle, close };
}
