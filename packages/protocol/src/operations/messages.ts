import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { EventRecord } from '../events.ts';
import {
  IdParam,
  Limit,
  Metadata,
  nullable,
  open,
  optional,
  Seq,
  seqPage,
  Text,
  UserId,
} from '../schemas/common.ts';
import { NewPoll } from '../schemas/polls.ts';
import { NewMentions } from '../schemas/mentions.ts';
import { Message, MessageOrTombstone, MessageVersion, SyncResult, Tombstone } from '../schemas/resources.ts';
import { operation, pageCost, table } from './define.ts';

const tag = 'Messages';
const both = ['server', 'client'] as const;
const inConversation = { conversationId: IdParam };
const oneMessage = { messageId: IdParam };

export const ClientMsgId = Type.String({ minLength: 1, maxLength: limits.clientMsgIdCharacters });

/** The fields of a message; the socket's `message.send` has the same. */
export const messageFields = {
  text: optional(nullable(Text)),
  replyTo: optional(nullable(IdParam)),
  attachments: optional(Type.Array(IdParam, { maxItems: limits.attachmentsPerMessage })),
  metadata: optional(Metadata),
  poll: optional(NewPoll),
  mentions: optional(NewMentions),
};
export const editFields = {
  text: optional(Text),
  metadata: optional(Metadata),
  mentions: optional(NewMentions),
  expectedVersion: Type.Integer({ minimum: 1 }),
};

export const messagesOperations = table(
  operation('messages.send', 'POST /v1/conversations/{conversationId}/messages', {
    summary: 'Send a message',
    text: 'A message needs text, an attachment, metadata or a poll. `clientMsgId` makes sending again safe, over REST and the socket alike, for 48 hours: a duplicate gives the original. A server may send as a member (`senderId`), or without one: a system message. Members get the event `message.new`. `mentions` says whom it is for: the text is never read for names.',
    tag,
    callers: ['server', 'client', 'dashboard'],
    permission: 'explorer.write',
    params: inConversation,
    body: { clientMsgId: optional(ClientMsgId), ...messageFields, senderId: optional(UserId) },
    statuses: [201],
    response: MessageOrTombstone,
    errors: [
      'not_found',
      'not_member',
      'blocked',
      'restricted',
      'message_rejected',
      'text_too_long',
      'metadata_too_large',
      'attachment_not_ready',
      'feature_disabled',
      'hook_unavailable',
    ],
    rate: 'send',
    repeatable: true,
    cost: 0,
  }),

  operation('messages.list', 'GET /v1/conversations/{conversationId}/messages', {
    summary: 'A page of history, in descending seq',
    text: 'Newest first; `before` gives older messages, `after` the next newer ones, still in descending order. Deleted messages are tombstones. If your own database holds older messages and is down, pages that need it are `503 history_unavailable`.',
    tag,
    callers: ['server', 'client', 'dashboard'],
    permission: 'content.read',
    params: inConversation,
    query: { before: optional(Seq), after: optional(Seq), limit: optional(Limit) },
    response: seqPage(MessageOrTombstone, 'descending'),
    errors: ['not_found', 'not_member', 'history_unavailable'],
    cost: pageCost(50),
  }),

  operation('messages.get', 'GET /v1/messages/{messageId}', {
    summary: 'Read one message',
    text: 'A deleted message is a tombstone; one that was deleted for good is 404.',
    tag,
    callers: ['server', 'client', 'dashboard'],
    permission: 'content.read',
    params: oneMessage,
    response: MessageOrTombstone,
    errors: ['not_found', 'not_member', 'history_unavailable'],
  }),

  operation('messages.update', 'PATCH /v1/messages/{messageId}', {
    summary: 'Edit a message (author, server)',
    text: '`expectedVersion` is the version that the editor saw: if another edit was faster, the answer is `409 version_conflict` and nothing changes. Members get `message.updated`. `mentions` replaces the list; if the text changes without it, the mentioned users stay and their ranges are removed.',
    tag,
    callers: both,
    params: oneMessage,
    body: editFields,
    response: Message,
    errors: [
      'not_found',
      'not_member',
      'blocked',
      'restricted',
      'message_rejected',
      'version_conflict',
      'text_too_long',
      'metadata_too_large',
      'feature_disabled',
      'hook_unavailable',
    ],
    cost: 2,
  }),

  operation('messages.delete', 'DELETE /v1/messages/{messageId}', {
    summary: 'Delete a message (author, moderator, owner, server); `hard=true` is for the server only',
    text: 'Soft: the message becomes a tombstone without content and keeps its place. Hard (servers only): the message is removed from history, and its content from all stored data. Deleting twice changes nothing.',
    tag,
    callers: both,
    params: oneMessage,
    query: { hard: optional(Type.Boolean({ default: false })) },
    statuses: [200, 204],
    response: Tombstone,
    errors: ['not_found', 'not_member'],
    cost: 2,
  }),

  operation('messages.versions', 'GET /v1/messages/{messageId}/versions', {
    summary:
      'List the stored edits of a message, oldest first: time, author, and for some days the text if a webhook receives edits',
    text: 'The text of a message before each edit, as far as it is kept.',
    tag: 'Edit history',
    callers: ['dashboard'],
    permission: 'content.read',
    params: oneMessage,
    response: open({ data: Type.Array(MessageVersion) }),
    errors: ['not_found'],
    cost: 3,
  }),

  operation('sync', 'POST /v1/sync', {
    summary: 'List the changes since the cursor, for badges',
    text: 'Call this after connecting. The answer has the conversations that changed since the cursor, with their unread counts, and the conversations that the user has left. Store the cursor together with this data. Repeats are normal. After 30 days the cursor is too old and `fullReload` is true: load the list again.',
    tag: 'Sync and events',
    callers: ['client'],
    body: { cursor: nullable(Type.String({ minLength: 1, maxLength: 512 })) },
    response: SyncResult,
    changesNothing: true,
    cost: 0,
  }),

  operation('events.list', 'GET /v1/conversations/{conversationId}/events', {
    summary: 'A page of events, in ascending order',
    text: 'Every change of a conversation takes the next `seq`, so a gap can be seen and fetched. `410 resync_required`: too many are missing (over 1,000) or they are no longer kept; load the latest page of messages instead.',
    tag: 'Sync and events',
    callers: ['server', 'client', 'dashboard'],
    permission: 'content.read',
    params: inConversation,
    query: { before: optional(Seq), after: optional(Seq), limit: optional(Limit) },
    response: seqPage(EventRecord, 'ascending'),
    errors: ['not_found', 'not_member', 'resync_required'],
    cost: pageCost(50),
  }),
);
