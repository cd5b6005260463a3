import { IdParam, Moment, nullable, optional, page, pageQuery } from '../schemas/common.ts';
import { NotificationLevel, Notifications } from '../schemas/mentions.ts';
import { Message } from '../schemas/resources.ts';
import { operation, pageCost, table } from './define.ts';

const common = { feature: 'mentions', callers: ['client'] } as const;

export const mentionsOperations = table(
  operation('mentions.list', 'GET /v1/mentions', {
    ...common,
    tag: 'Mentions',
    summary: 'Messages that name the caller, newest first',
    text: 'Only messages that mention the user by id, not mentions of everyone, in the user’s own conversations. A page may be short while `nextCursor` is set.',
    query: { conversationId: optional(IdParam), ...pageQuery },
    response: page(Message),
    errors: ['not_found', 'not_member', 'history_unavailable'],
    cost: pageCost(50),
  }),

  operation('conversations.setLevel', 'PUT /v1/conversations/{conversationId}/notifications', {
    ...common,
    tag: 'Conversations',
    summary: 'Choose which messages of a conversation one is pushed',
    text: '`all`, `mentions` (messages that name the user or everyone) or `none`, which is the same as muting; `until` ends `none` by itself, and the level before holds again. Unread counts and sockets are not affected. The user’s other devices get the frame `personal`.',
    params: { conversationId: IdParam },
    body: {
      level: NotificationLevel,
      until: optional(nullable(Moment)),
    },
    response: Notifications,
    errors: ['not_found', 'not_member'],
  }),
);
