import Type from 'typebox';
import { limits } from '../limits.ts';
import {
  IdParam,
  Metadata,
  nullable,
  open,
  optional,
  page,
  pageQuery,
  Seq,
  UserId,
} from '../schemas/common.ts';
import { Conversation, ConversationListItem, ConversationType, Member, Role } from '../schemas/resources.ts';
import { operation } from './define.ts';

const tag = 'Conversations';
const both = ['server', 'client'] as const;
const params = { conversationId: IdParam };
/** The number of different users is checked after repeats are removed; until then the size of the body bounds the list. */
const someUsers = (options: object = {}) =>
  Type.Array(UserId, {
    description: `Users; repeats count once, ${limits.groupMembers} at most`,
    ...options,
  });
const Name = Type.String({ minLength: 1, maxLength: limits.conversationNameCharacters });

export const conversationsCreate = operation('conversations.create', 'POST /v1/conversations', {
  summary: 'Create a conversation; a direct one is idempotent by its pair',
  tag,
  callers: both,
  body: {
    type: ConversationType,
    members: someUsers(),
    name: optional(nullable(Name)),
    metadata: optional(Metadata),
    ownerId: optional(UserId),
  },
  statuses: [201, 200],
  response: Conversation,
  errors: ['metadata_too_large', 'not_found', 'user_deactivated'],
});

export const conversationsList = operation('conversations.list', 'GET /v1/conversations', {
  summary: "A user's conversations, by last activity, newest first",
  tag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'explorer.read',
  query: { userId: optional(UserId), ...pageQuery },
  response: page(ConversationListItem),
  errors: ['not_found'],
});

export const conversationsGet = operation('conversations.get', 'GET /v1/conversations/{conversationId}', {
  summary: 'Read a conversation',
  tag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'explorer.read',
  params,
  response: Conversation,
  errors: ['not_found', 'not_member'],
});

export const conversationsUpdate = operation(
  'conversations.update',
  'PATCH /v1/conversations/{conversationId}',
  {
    summary: 'Change name or metadata (owner, server)',
    tag,
    callers: both,
    params,
    body: { name: optional(nullable(Name)), metadata: optional(Metadata) },
    response: Conversation,
    errors: ['not_found', 'not_member', 'metadata_too_large'],
  },
);

export const conversationsDelete = operation(
  'conversations.delete',
  'DELETE /v1/conversations/{conversationId}',
  {
    summary: 'Delete a conversation (soft)',
    tag,
    callers: ['server'],
    params,
    errors: ['not_found'],
  },
);

const Muted = open({ conversationId: Type.String(), muted: Type.Boolean() });

export const conversationsMute = operation(
  'conversations.mute',
  'PUT /v1/conversations/{conversationId}/mute',
  {
    summary: 'Mute a conversation for oneself',
    tag,
    callers: ['client'],
    params,
    response: Muted,
    errors: ['not_found', 'not_member'],
  },
);

export const conversationsUnmute = operation(
  'conversations.unmute',
  'DELETE /v1/conversations/{conversationId}/mute',
  {
    summary: 'Unmute a conversation for oneself',
    tag,
    callers: ['client'],
    params,
    response: Muted,
    errors: ['not_found', 'not_member'],
  },
);

export const conversationsRead = operation(
  'conversations.read',
  'POST /v1/conversations/{conversationId}/read',
  {
    summary: 'Move the own read mark forward; a lower value is ignored',
    tag: 'Read state',
    callers: ['client'],
    params,
    body: { seq: Seq },
    response: open({ conversationId: Type.String(), lastReadSeq: Seq, unreadCount: Type.Integer() }),
    errors: ['not_found', 'not_member'],
    // A mark that has already moved stays where it is.
    repeatable: true,
  },
);

const memberTag = 'Members';

export const membersList = operation('members.list', 'GET /v1/conversations/{conversationId}/members', {
  summary: 'Members with their read and delivery marks',
  tag: memberTag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'explorer.read',
  params,
  query: pageQuery,
  response: page(Member),
  errors: ['not_found', 'not_member'],
});

export const membersAdd = operation('members.add', 'POST /v1/conversations/{conversationId}/members', {
  summary: 'Add members to a group, all or nothing (owner, server)',
  tag: memberTag,
  callers: both,
  params,
  body: { userIds: someUsers({ minItems: 1 }) },
  response: open({ data: Type.Array(Member) }),
  errors: ['not_found', 'not_member', 'already_member'],
});

export const membersRemove = operation(
  'members.remove',
  'DELETE /v1/conversations/{conversationId}/members/{userId}',
  {
    summary: 'Remove a member, or leave (owner, self, server)',
    tag: memberTag,
    callers: both,
    params: { ...params, userId: UserId },
    errors: ['not_found', 'not_member'],
  },
);

export const membersUpdate = operation(
  'members.update',
  'PATCH /v1/conversations/{conversationId}/members/{userId}',
  {
    summary: "Set a member's role",
    tag: memberTag,
    callers: ['server'],
    params: { ...params, userId: UserId },
    body: { role: Role },
    response: Member,
    errors: ['not_found'],
  },
);
