import Type from 'typebox';
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
import { Message, MessageOrTombstone, MessageVersion, SyncResult, Tombstone } from '../schemas/resources.ts';
import { operation } from './define.ts';

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
};
export const editFields = {
  text: optional(Text),
  metadata: optional(Metadata),
  expectedVersion: Type.Integer({ minimum: 1 }),
};

export const messagesSend = operation('messages.send', 'POST /v1/conversations/{conversationId}/messages', {
  summary: 'Send a message',
  tag,
  callers: both,
  params: inConversation,
  body: { clientMsgId: optional(ClientMsgId), ...messageFields, senderId: optional(UserId) },
  statuses: [201],
  response: MessageOrTombstone,
  errors: ['not_found', 'not_member', 'text_too_long', 'metadata_too_large', 'attachment_not_ready'],
  rate: 'send',
  repeatable: true,
});

export const messagesList = operation('messages.list', 'GET /v1/conversations/{conversationId}/messages', {
  summary: 'A page of history, in descending seq',
  tag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'content.read',
  params: inConversation,
  query: { before: optional(Seq), after: optional(Seq), limit: optional(Limit) },
  response: seqPage(MessageOrTombstone, 'descending'),
  errors: ['not_found', 'not_member', 'history_unavailable'],
});

export const messagesGet = operation('messages.get', 'GET /v1/messages/{messageId}', {
  summary: 'Read one message',
  tag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'content.read',
  params: oneMessage,
  response: MessageOrTombstone,
  errors: ['not_found', 'not_member', 'history_unavailable'],
});

export const messagesUpdate = operation('messages.update', 'PATCH /v1/messages/{messageId}', {
  summary: 'Edit a message (author, server)',
  tag,
  callers: both,
  params: oneMessage,
  body: editFields,
  response: Message,
  errors: ['not_found', 'not_member', 'version_conflict', 'text_too_long', 'metadata_too_large'],
});

export const messagesDelete = operation('messages.delete', 'DELETE /v1/messages/{messageId}', {
  summary: 'Delete a message (author, owner, server); `hard=true` is for the server only',
  tag,
  callers: both,
  params: oneMessage,
  query: { hard: optional(Type.Boolean({ default: false })) },
  statuses: [200, 204],
  response: Tombstone,
  errors: ['not_found', 'not_member'],
});

export const sync = operation('sync', 'POST /v1/sync', {
  summary: 'What changed since the cursor, for badges',
  tag: 'Sync and events',
  callers: ['client'],
  body: { cursor: nullable(Type.String({ minLength: 1, maxLength: 512 })) },
  response: SyncResult,
  changesNothing: true,
});

export const eventsList = operation('events.list', 'GET /v1/conversations/{conversationId}/events', {
  summary: 'A page of events, in ascending order',
  tag: 'Sync and events',
  callers: ['server', 'client', 'dashboard'],
  permission: 'content.read',
  params: inConversation,
  query: { before: optional(Seq), after: optional(Seq), limit: optional(Limit) },
  response: seqPage(EventRecord, 'ascending'),
  errors: ['not_found', 'not_member', 'resync_required'],
});

export const messagesVersions = operation('messages.versions', 'GET /v1/messages/{messageId}/versions', {
  summary:
    'The edits of a message, oldest first, as far as they are kept: when, by whom, and for some days what it said where webhooks are told of edits',
  tag: 'Edit history',
  callers: ['dashboard'],
  permission: 'content.read',
  params: oneMessage,
  response: open({ data: Type.Array(MessageVersion) }),
  errors: ['not_found'],
});
