import { Type } from '../type.ts';
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
import {
  Conversation,
  ConversationListItem,
  ConversationType,
  ExplorerConversation,
  Member,
  Role,
} from '../schemas/resources.ts';
import { ConversationRulesChange } from '../schemas/rules.ts';
import { operation, pageCost, table } from './define.ts';

const tag = 'Conversations';
const both = ['server', 'client'] as const;
const all = ['server', 'client', 'dashboard'] as const;
const params = { conversationId: IdParam };
/** The number of different users is checked after repeats are removed; until then the size of the body bounds the list. */
const someUsers = (options: object = {}) =>
  Type.Array(UserId, {
    description: `Users; repeats count once, ${limits.groupMembers} at most`,
    ...options,
  });
const Name = Type.String({ minLength: 1, maxLength: limits.conversationNameCharacters });

const Muted = open({ conversationId: Type.String(), muted: Type.Boolean() });

const memberTag = 'Members';

export const conversationsOperations = table(
  operation('conversations.create', 'POST /v1/conversations', {
    summary: 'Create a conversation; a direct one is idempotent by its pair',
    text: 'Direct: exactly two members; a second request for the same pair answers with the existing conversation (200). Group: 1 to 500 members with the owner. A client becomes a member, and the owner of a group; which ones it may create is the setting `clientConversationCreation`. A server may name users who do not exist yet, a client may not. A group may have `rules` from the start. Members get the event `conversation.created`.',
    tag,
    callers: all,
    permission: 'explorer.write',
    body: {
      type: ConversationType,
      members: someUsers(),
      name: optional(nullable(Name)),
      metadata: optional(Metadata),
      ownerId: optional(UserId),
      rules: optional(ConversationRulesChange),
    },
    statuses: [201, 200],
    response: Conversation,
    errors: ['metadata_too_large', 'not_found', 'user_deactivated', 'blocked'],
    cost: ({ type, members }) => (type === 'direct' ? 2 : 2 + members.length / 25),
  }),

  operation('conversations.list', 'GET /v1/conversations', {
    summary: "A user's conversations, by last activity, newest first",
    text: 'A client lists its own conversations; a server names the user. Each item has the unread count, the last message and the notification level. Direct conversations include their two members.',
    tag,
    callers: all,
    permission: 'explorer.read',
    query: { userId: optional(UserId), ...pageQuery },
    response: page(ConversationListItem),
    errors: ['not_found'],
    cost: pageCost(25),
  }),

  operation('explorer.conversations', 'GET /v1/explorer/conversations', {
    summary: 'List all conversations of the environment, newest activity first, without message contents',
    text: 'For the dashboard. `query` finds by id, by the beginning of the name, and by a member’s id or the beginning of its name; it looks through a bounded number and has no further pages. Deleted conversations are left out.',
    tag,
    callers: ['dashboard'],
    permission: 'explorer.read',
    query: {
      ...pageQuery,
      type: optional(ConversationType),
      userId: optional(UserId),
      query: optional(
        Type.String({
          minLength: 1,
          maxLength: limits.conversationNameCharacters,
          description: 'An id, or the beginning of a name',
        }),
      ),
    },
    response: page(ExplorerConversation),
    errors: ['not_found'],
    cost: pageCost(10),
  }),

  operation('conversations.get', 'GET /v1/conversations/{conversationId}', {
    summary: 'Read a conversation',
    text: 'The conversation with all its members. A server also sees deleted conversations, with `deletedAt`.',
    tag,
    callers: all,
    permission: 'explorer.read',
    params,
    response: Conversation,
    errors: ['not_found', 'not_member'],
  }),

  operation('conversations.update', 'PATCH /v1/conversations/{conversationId}', {
    summary: 'Change name, metadata or rules (owner, server)',
    text: 'Only the given fields and keys of `rules` change; only groups have `rules`. `slowModeSeconds` lets each member send one message in that time; earlier messages are `429 rate_limited` with the remaining time. If `posting` is `moderators`, other members get `403 restricted`. No rule binds servers, and only `reacting` binds owners and moderators. Members get `conversation.updated` with just the changed fields.',
    tag,
    callers: all,
    permission: 'explorer.write',
    params,
    body: {
      name: optional(nullable(Name)),
      metadata: optional(Metadata),
      rules: optional(ConversationRulesChange),
    },
    response: Conversation,
    errors: ['not_found', 'not_member', 'metadata_too_large'],
  }),

  operation('conversations.delete', 'DELETE /v1/conversations/{conversationId}', {
    summary: 'Delete a conversation (soft)',
    text: 'Clients do not see it any more (404), sockets get `conversation.deleted`, a live call ends. Nothing is removed: creating a deleted direct conversation again brings it back with its history.',
    tag,
    callers: ['server'],
    params,
    errors: ['not_found'],
    cost: 4,
  }),

  operation('conversations.mute', 'PUT /v1/conversations/{conversationId}/mute', {
    summary: 'Mute a conversation for oneself',
    text: 'No pushes for this conversation to this user; messages, unread counts and sockets are not affected. It is the level `none` of `PUT …/notifications`, without end.',
    tag,
    callers: ['client'],
    params,
    response: Muted,
    errors: ['not_found', 'not_member'],
  }),

  operation('conversations.unmute', 'DELETE /v1/conversations/{conversationId}/mute', {
    summary: 'Unmute a conversation for oneself',
    text: 'The level from before holds again.',
    tag,
    callers: ['client'],
    params,
    response: Muted,
    errors: ['not_found', 'not_member'],
  }),

  operation('conversations.read', 'POST /v1/conversations/{conversationId}/read', {
    summary: 'Move the own read mark forward; a lower value is ignored',
    text: 'Counts everything up to `seq` as read. The other members get a receipt, at most once a second; webhooks get `message.read`, at most every 10 s. Sending a message moves the own mark as well.',
    tag: 'Read state',
    callers: ['client'],
    params,
    body: { seq: Seq },
    response: open({
      conversationId: Type.String(),
      lastReadSeq: Seq,
      unreadCount: Type.Integer(),
      mentionUnreadCount: Type.Integer({ minimum: 0, description: 'Unread messages that mention one' }),
    }),
    errors: ['not_found', 'not_member'],
    // A mark that has already moved stays where it is.
    repeatable: true,
    cost: 0,
  }),

  operation('members.list', 'GET /v1/conversations/{conversationId}/members', {
    summary: 'Members with their read and delivery marks',
    text: 'Members are sorted by user id. `lastReadSeq` and `lastDeliveredSeq` are for the ticks beside messages.',
    tag: memberTag,
    callers: all,
    permission: 'explorer.read',
    params,
    query: pageQuery,
    response: page(Member),
    errors: ['not_found', 'not_member'],
    cost: pageCost(100),
  }),

  operation('members.add', 'POST /v1/conversations/{conversationId}/members', {
    summary: 'Add members to a group, all or nothing (owner, server)',
    text: 'All users are added or none: if one is already a member, it is `409 already_member`. New members see the whole history and start with nothing unread. Direct conversations cannot be changed.',
    tag: memberTag,
    callers: all,
    permission: 'explorer.write',
    params,
    body: { userIds: someUsers({ minItems: 1 }) },
    response: open({ data: Type.Array(Member) }),
    errors: ['not_found', 'not_member', 'already_member', 'blocked', 'restricted'],
    cost: ({ userIds }) => 2 + userIds.length / 25,
  }),

  operation('members.remove', 'DELETE /v1/conversations/{conversationId}/members/{userId}', {
    summary: 'Remove a member, or leave (owner, moderator, self, server)',
    text: 'A member may leave; the owner and the server may remove any member, a moderator only ordinary members. The removed user gets `member.removed` and no later events of the conversation. When the owner leaves, only the server manages the group.',
    tag: memberTag,
    callers: all,
    permission: 'explorer.write',
    params: { ...params, userId: UserId },
    errors: ['not_found', 'not_member'],
  }),

  operation('members.update', 'PATCH /v1/conversations/{conversationId}/members/{userId}', {
    summary: "Set a member's role (server, owner)",
    text: 'A group may have several owners, or none. Where the setting `ownersSetRoles` is on, an owner may make a member a moderator and a moderator a member; it makes no owner, and changes none.',
    tag: memberTag,
    callers: both,
    params: { ...params, userId: UserId },
    body: { role: Role },
    response: Member,
    errors: ['not_found', 'not_member'],
  }),
);
