import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { nullable, open, optional, Seq, Timestamp } from './common.ts';
import { Poll } from './polls.ts';
import { Mention, NotificationLevel } from './mentions.ts';
import { Reactions } from './reactions.ts';
import { ConversationRules } from './rules.ts';

/** messages#fields: resources as the service sends them. */

const id = (prefix: string) => Type.String({ pattern: `^${prefix}` });
const anyUserId = Type.String({ minLength: 1 });
const meta = Type.Unsafe<Record<string, unknown>>({ type: 'object' });

export const User = open(
  {
    id: anyUserId,
    name: nullable(Type.String()),
    imageUrl: nullable(Type.String()),
    metadata: meta,
    createdAt: Timestamp,
    deactivatedAt: nullable(Timestamp),
  },
  'User',
);
export type User = Static<typeof User>;

export const Role = Type.Union([Type.Literal('owner'), Type.Literal('moderator'), Type.Literal('member')]);
export type Role = Static<typeof Role>;

export const ConversationType = Type.Union([Type.Literal('direct'), Type.Literal('group')]);

export const Conversation = open(
  {
    id: id('conv_'),
    type: ConversationType,
    name: nullable(Type.String()),
    metadata: meta,
    lastSeq: Seq,
    createdAt: Timestamp,
    members: Type.Array(open({ userId: anyUserId, role: Role })),
    rules: optional(ConversationRules),
    deletedAt: optional(Timestamp),
  },
  'Conversation',
);
export type Conversation = Static<typeof Conversation>;

export const LastMessage = open({
  id: id('msg_'),
  seq: Seq,
  senderId: nullable(anyUserId),
  text: nullable(Type.String()),
  createdAt: Timestamp,
  attachments: optional(
    open({
      count: Type.Integer({ minimum: 1 }),
      mimeType: Type.String({ description: 'Of the first one' }),
      name: Type.String({ description: 'Of the first one' }),
    }),
  ),
});

const mentionUnreadCount = optional(
  Type.Integer({
    minimum: 1,
    description: 'Unread messages that mention one; missing where there are none',
  }),
);

export const ConversationListItem = open(
  {
    id: id('conv_'),
    type: ConversationType,
    name: nullable(Type.String()),
    metadata: meta,
    lastSeq: Seq,
    unreadCount: Type.Integer({ minimum: 0 }),
    lastReadSeq: Seq,
    muted: Type.Boolean(),
    level: NotificationLevel,
    mutedUntil: optional(
      Type.String({ format: 'date-time', description: 'When the level `none` ends, if it does' }),
    ),
    mentionUnreadCount,
    lastMessage: nullable(LastMessage),
    lastMessageAt: nullable(
      Type.String({
        format: 'date-time',
        description: 'When `lastMessage` was sent, to sort by messages alone',
      }),
    ),
    lastActivityAt: Timestamp,
    createdAt: Timestamp,
    rules: optional(ConversationRules),
    /** Only for direct conversations: the two members. */
    members: optional(Type.Array(open({ userId: anyUserId, role: Role }))),
  },
  'ConversationListItem',
);
export type ConversationListItem = Static<typeof ConversationListItem>;

/** A conversation as operators of the environment see it: its members, without messages. */
export const ExplorerConversation = open(
  {
    id: id('conv_'),
    type: ConversationType,
    name: nullable(Type.String()),
    lastSeq: Seq,
    lastActivityAt: Timestamp,
    createdAt: Timestamp,
    memberCount: Type.Integer({ minimum: 0, description: 'How many members it has' }),
    people: Type.Array(open({ id: anyUserId, name: nullable(Type.String()) }), {
      description: 'Up to four of the members',
    }),
  },
  'ExplorerConversation',
);
export type ExplorerConversation = Static<typeof ExplorerConversation>;

export const Member = open(
  { userId: anyUserId, role: Role, lastReadSeq: Seq, lastDeliveredSeq: Seq },
  'Member',
);
export type Member = Static<typeof Member>;

export const Attachment = open(
  {
    id: id('att_'),
    name: Type.String(),
    size: Type.Integer(),
    mimeType: Type.String(),
    width: optional(Type.Integer()),
    height: optional(Type.Integer()),
    durationMs: optional(Type.Integer()),
    waveform: optional(Type.String()),
    status: Type.String(),
  },
  'Attachment',
);
export type Attachment = Static<typeof Attachment>;

export const Message = open(
  {
    id: id('msg_'),
    conversationId: id('conv_'),
    seq: Seq,
    senderId: nullable(anyUserId),
    text: nullable(Type.String()),
    replyTo: nullable(id('msg_')),
    attachments: Type.Array(Attachment, { maxItems: limits.attachmentsPerMessage }),
    metadata: meta,
    version: Type.Integer({ minimum: 1 }),
    createdAt: Timestamp,
    editedAt: nullable(Timestamp),
    deletedAt: nullable(Timestamp),
    poll: optional(Poll),
    mentions: optional(Type.Array(Mention, { maxItems: limits.mentionsPerMessage })),
    /** Only where messages are read over REST (reactions#message). */
    reactions: optional(Reactions),
    /** Likewise (pins#message). */
    pinnedAt: optional(
      Type.String({ format: 'date-time', description: 'When it was pinned; missing where it is not' }),
    ),
    pinnedBy: optional(nullable(anyUserId)),
  },
  'Message',
);
export type Message = Static<typeof Message>;

const tombstone = open(
  {
    id: id('msg_'),
    conversationId: id('conv_'),
    seq: Seq,
    senderId: nullable(anyUserId),
    text: Type.Null(),
    attachments: Type.Unsafe<never[]>(Type.Array(Attachment, { maxItems: 0 })),
    createdAt: Timestamp,
    deletedAt: Timestamp,
  },
  'Tombstone',
);
/**
 * A tombstone also declares the fields that only live messages have, so that `message.replyTo` can be read without
 * checking first which of both it is.
 */
export type Tombstone = Static<typeof tombstone> & {
  [Field in Exclude<keyof Message, keyof Static<typeof tombstone>>]?: undefined;
};
export const Tombstone = Type.Unsafe<Tombstone>(tombstone);

export const MessageOrTombstone = Type.Union([Message, Tombstone], { title: 'MessageOrTombstone' });
export type MessageOrTombstone = Static<typeof MessageOrTombstone>;

export const SyncResult = open(
  {
    conversations: Type.Array(
      open({
        id: id('conv_'),
        lastSeq: Seq,
        unreadCount: Type.Integer({ minimum: 0 }),
        mentionUnreadCount,
      }),
    ),
    removed: Type.Array(Type.String()),
    cursor: Type.String(),
    fullReload: Type.Boolean(),
  },
  'SyncResult',
);
export type SyncResult = Static<typeof SyncResult>;

export const ErrorBody = open(
  {
    error: open({
      type: Type.String(),
      code: Type.String(),
      message: Type.String(),
      param: optional(Type.String()),
      requestId: id('req_'),
      retryAfterMs: optional(Type.Integer({ minimum: 0 })),
      details: optional(
        Type.Unsafe<Record<string, unknown>>({
          type: 'object',
          description: 'What a program needs to know besides the code',
        }),
      ),
    }),
  },
  'Error',
);
export type ErrorBody = Static<typeof ErrorBody>;

/** One version of a message, as far as it is stored. */
export const MessageVersion = open(
  {
    type: Type.Unsafe<'created' | 'edited' | 'deleted'>({
      type: 'string',
      enum: ['created', 'edited', 'deleted'],
    }),
    version: Type.Integer({ minimum: 1 }),
    seq: Seq,
    at: Timestamp,
    actorId: nullable(Type.String({ description: 'null: the server' })),
    text: nullable(Type.String({ description: 'null: not kept, or deleted' })),
    kept: Type.Boolean({ description: 'What this version said is known' }),
  },
  'MessageVersion',
);
export type MessageVersion = Static<typeof MessageVersion>;
