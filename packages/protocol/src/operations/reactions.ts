import { Type } from '../type.ts';
import { IdParam, open, optional, page, pageQuery, UserId } from '../schemas/common.ts';
import { Emoji, Reaction, ReactionKey, Reactions } from '../schemas/reactions.ts';
import { operation, pageCost, table } from './define.ts';

const common = { tag: 'Reactions', feature: 'reactions' } as const;
const ofMessage = { messageId: IdParam };
const answer = open({ messageId: Type.String(), reactions: Reactions });
const errors = ['not_found', 'not_member', 'history_unavailable'] as const;
const forUser = optional(
  Type.Unsafe<string>({
    ...UserId,
    description: 'Whose reaction it is; a server must say, a client must not',
  }),
);
const change = {
  ...common,
  callers: ['server', 'client'],
  rate: 'reaction',
  repeatable: true,
  response: answer,
} as const;

export const reactionsOperations = table(
  operation('reactions.set', 'PUT /v1/messages/{messageId}/reactions/{emoji}', {
    ...change,
    summary: 'React to a message',
    text: 'The emoji is part of the path, percent-encoded. Setting the same one again changes nothing. Members get the event `message.reactions`, at once or after at most 1 s (3 s from 100 reactions on, 10 s from 1,000 on). A message has at most 20 different emoji.',
    params: { ...ofMessage, emoji: Emoji },
    body: {
      replace: optional(
        Type.Boolean({ default: false, description: 'Takes the user’s other reactions to the message away' }),
      ),
      userId: forUser,
    },
    errors: [...errors, 'blocked', 'restricted', 'limit_reached'],
  }),

  operation('reactions.remove', 'DELETE /v1/messages/{messageId}/reactions/{emoji}', {
    ...change,
    summary: 'Take a reaction back',
    text: 'Also answers 200 if it was not there.',
    params: { ...ofMessage, emoji: Emoji },
    query: { userId: forUser },
    errors,
  }),

  operation('reactions.list', 'GET /v1/messages/{messageId}/reactions', {
    ...common,
    summary: 'List the users who reacted to a message, newest first',
    text: 'One row for each user and emoji. Votes for a poll are among them, as `poll:1` for its first option, unless it is anonymous. How many there are is in `reactions` of the message itself.',
    callers: ['server', 'client', 'dashboard'],
    permission: 'content.read',
    params: ofMessage,
    query: { emoji: optional(ReactionKey), ...pageQuery },
    response: page(Reaction),
    errors,
    cost: pageCost(50),
  }),
);
