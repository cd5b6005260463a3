import { Type } from '../type.ts';
import { IdParam, open } from '../schemas/common.ts';
import { VotedOptions } from '../schemas/polls.ts';
import { Reactions } from '../schemas/reactions.ts';
import { Message } from '../schemas/resources.ts';
import { operation, table } from './define.ts';

const common = { tag: 'Polls', feature: 'polls', params: { messageId: IdParam } } as const;
const errors = [
  'not_found',
  'not_member',
  'blocked',
  'restricted',
  'state_conflict',
  'history_unavailable',
] as const;

export const pollsOperations = table(
  operation('polls.vote', 'PUT /v1/messages/{messageId}/votes', {
    ...common,
    summary: 'Vote in a poll',
    text: 'Replaces the user’s vote; `[]` takes it back. The results are `votes` beside the reactions to the message, and come in the same event, `message.reactions`. Where the poll takes one choice, more than one option is refused. A poll that was closed, or whose `closesAt` has passed, is `409 state_conflict`.',
    callers: ['client'],
    body: { options: VotedOptions },
    response: open({ messageId: Type.String(), reactions: Reactions }),
    errors,
    rate: 'reaction',
    repeatable: true,
  }),

  operation('polls.close', 'POST /v1/messages/{messageId}/poll/close', {
    ...common,
    summary: 'Close a poll (author, moderator, owner, server)',
    text: 'No vote is accepted from then on. Members get the event `message.enriched` with `poll.closedAt`; the message gets no new version. A poll that is closed already is `409 state_conflict`.',
    callers: ['server', 'client'],
    response: Message,
    errors,
    cost: 2,
  }),
);
