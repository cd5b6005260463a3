import { Type } from '../type.ts';
import { IdParam, nullable, open, Timestamp } from '../schemas/common.ts';
import { Message } from '../schemas/resources.ts';
import { limits } from '../limits.ts';
import { operation, table } from './define.ts';

const common = { tag: 'Pins', feature: 'pins', callers: ['server', 'client'] } as const;
const ofMessage = { messageId: IdParam };
const errors = ['not_found', 'not_member', 'history_unavailable'] as const;
const changeErrors = [...errors, 'blocked', 'restricted'] as const;

export const pinsOperations = table(
  operation('pins.set', 'PUT /v1/messages/{messageId}/pin', {
    ...common,
    summary: 'Pin a message for all members',
    text: `A conversation has at most ${limits.pinsPerConversation} pinned messages. Pinning a pinned message changes nothing and answers with the first pin. Members get the event \`message.pinned\`.`,
    params: ofMessage,
    response: open({
      messageId: Type.String(),
      pinnedAt: Timestamp,
      pinnedBy: nullable(Type.String({ minLength: 1 })),
    }),
    errors: [...changeErrors, 'limit_reached'],
    cost: 2,
  }),

  operation('pins.remove', 'DELETE /v1/messages/{messageId}/pin', {
    ...common,
    summary: 'Unpin a message',
    text: 'Also answers 204 if it was not pinned; then there is no event. Deleting a message unpins it by itself.',
    params: ofMessage,
    errors: changeErrors,
    cost: 2,
  }),

  operation('pins.list', 'GET /v1/conversations/{conversationId}/pins', {
    ...common,
    summary: 'The pinned messages, the newest pin first',
    text: 'Whole messages, with `pinnedAt` and `pinnedBy`. Deleted messages are not among them.',
    params: { conversationId: IdParam },
    response: open({ data: Type.Array(Message, { maxItems: limits.pinsPerConversation }) }),
    errors,
    cost: 3,
  }),
);
