import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { open, optional, Timestamp } from './common.ts';
import { ownVotes, pollVotes } from './polls.ts';

/** reactions#emoji: a key, not checked against a list. `poll:` is kept for votes. */
export const Emoji = Type.String({
  minLength: 1,
  maxLength: limits.emojiBytes,
  pattern: '^(?!poll:)[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$',
  description:
    'An emoji, or any key of 1 to 64 bytes without control characters, such as `:party:`; it may not begin with `poll:`',
});

/** What a list of reactions can be asked for: an emoji, or the key of votes. */
export const ReactionKey = Type.String({
  minLength: 1,
  maxLength: limits.emojiBytes,
  pattern: '^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$',
  description: 'An emoji, or `poll:` and the id of an option',
});

const userId = Type.String({ minLength: 1 });

export const ReactionCount = open(
  {
    emoji: Type.String(),
    count: Type.Integer({ minimum: 1, description: 'How many users reacted so' }),
    userIds: Type.Array(userId, { maxItems: limits.reactorsShown, description: 'The newest three of them' }),
  },
  'ReactionCount',
);
export type ReactionCount = Static<typeof ReactionCount>;

/** What everybody sees of a message's reactions. */
export const reactionCounts = {
  revision: Type.Integer({ minimum: 0, description: 'Grows with every change: the higher one is newer' }),
  total: Type.Integer({ minimum: 0, description: 'All reactions together, without votes' }),
  counts: Type.Array(ReactionCount, {
    maxItems: limits.emojiPerMessage,
    description: 'By emoji, in the order of their first use',
  }),
  ...pollVotes,
};

export const Reactions = open(
  {
    ...reactionCounts,
    own: optional(Type.Array(Type.String(), { description: 'The caller’s own; only for clients' })),
    ownVotes,
  },
  'Reactions',
);
export type Reactions = Static<typeof Reactions>;

export const ReactionChange = open({ userId, emoji: Type.String(), on: Type.Boolean() }, 'ReactionChange');
export type ReactionChange = Static<typeof ReactionChange>;

/** The fields of an event besides the counts. */
export const reactionChanges = {
  changes: Type.Array(ReactionChange, {
    maxItems: limits.reactionChanges,
    description: 'What changed since the event before, the newest 20; none in an event that is read later',
  }),
  more: Type.Boolean({ description: 'There were more changes than these' }),
};

export const Reaction = open({ userId, emoji: Type.String(), createdAt: Timestamp }, 'Reaction');
export type Reaction = Static<typeof Reaction>;
