import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { closed, line, Moment, open, optional } from './common.ts';

/** polls#poll. Votes are reactions under the keys `poll:1` to `poll:10` (polls#votes). */

const optionId = Type.Integer({ minimum: 1, maximum: limits.pollOptions.max });

export const PollOption = open({ id: optionId, text: Type.String() }, 'PollOption');

/** A poll as the service sends it. */
export const Poll = open(
  {
    question: Type.String(),
    options: Type.Array(PollOption, {
      minItems: limits.pollOptions.min,
      maxItems: limits.pollOptions.max,
      description: 'Their ids are 1, 2, 3, …',
    }),
    multiple: Type.Boolean({ description: 'A user may choose more than one option' }),
    anonymous: Type.Boolean({ description: 'Nobody is told who voted for what' }),
    closesAt: optional(Type.String({ format: 'date-time', description: 'From then on no vote is accepted' })),
    closedAt: optional(
      Type.String({ format: 'date-time', description: 'When somebody closed it before `closesAt`' }),
    ),
  },
  'Poll',
);
export type Poll = Static<typeof Poll>;

/** A poll as a caller sends it. */
export const NewPoll = closed({
  question: line({ minLength: 1, maxLength: limits.pollQuestionCharacters }),
  options: Type.Array(
    closed({
      id: optional(
        Type.Integer({
          minimum: 1,
          maximum: limits.pollOptions.max,
          description: 'Its place in the list, from 1: it may be left out',
        }),
      ),
      text: line({
        minLength: 1,
        maxLength: limits.pollOptionCharacters,
        description: 'What can be voted for, 1 to 100 characters',
      }),
    }),
    {
      minItems: limits.pollOptions.min,
      maxItems: limits.pollOptions.max,
      description: 'What can be voted for, 2 to 10',
    },
  ),
  multiple: optional(Type.Boolean({ default: false, description: 'A user may choose more than one option' })),
  anonymous: optional(Type.Boolean({ default: false, description: 'Nobody is told who voted for what' })),
  closesAt: optional(
    Type.Unsafe<string>({ ...Moment, description: 'From then on no vote is accepted; in the future' }),
  ),
});
export type NewPoll = Static<typeof NewPoll>;

/** What a vote names: all options that the user wants, none to take the vote back. */
export const VotedOptions = Type.Array(optionId, {
  maxItems: limits.pollOptions.max,
  uniqueItems: true,
  description: 'All options that the user votes for, instead of those before; none takes the vote back',
});

export const VoteCount = open(
  {
    option: Type.Integer({ minimum: 1, description: 'The id of the option' }),
    count: Type.Integer({ minimum: 1, description: 'How many users voted for it' }),
    userIds: Type.Array(Type.String({ minLength: 1 }), {
      maxItems: limits.reactorsShown,
      description: 'The newest three of them; none where the poll is anonymous',
    }),
  },
  'VoteCount',
);
export type VoteCount = Static<typeof VoteCount>;

/** The votes for a message's poll, beside its reactions. */
export const pollVotes = {
  votes: optional(
    Type.Array(VoteCount, {
      maxItems: limits.pollOptions.max,
      description: 'The votes for the poll, by option; missing where there are none',
    }),
  ),
};
export const ownVotes = optional(
  Type.Array(Type.Integer(), {
    description: 'The options that the caller voted for; only for clients, missing where there are none',
  }),
);

/** The key under which a vote is kept and listed. */
export const voteKey = (option: number): string => `${voteKeys}${option}`;
export const voteKeys = 'poll:';
