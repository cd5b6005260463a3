export { createClient } from './client.ts';
export type {
  BlocksApi,
  Client,
  ClientEvents,
  ClientOptions,
  ConversationEvent,
  ReportTarget,
} from './client-types.ts';
export type { Conversations } from './conversations.ts';
/** `Conversation` is the open conversation that `open`, `createDirect` and `createGroup` give: it shows, sends and hears. */
export type { ConversationHandle as Conversation, ConversationHandle } from './state/conversation.ts';
export type { ConversationListSnapshot } from './state/conversation-list.ts';
export type { Mentions, MentionsSnapshot } from './features/mentions.ts';
export type { MessageItem, MessagesSnapshot } from './state/message-item.ts';
export type { PinsSnapshot } from './features/pins.ts';
export type { RestrictOptions } from './features/moderation.ts';
export type { Action, NewInvite, Rules } from './features/rules.ts';
export type { DiscoverPage } from './features/joining.ts';
export type { ReactorsPage } from './features/reactions.ts';
export type { PresenceApi } from './state/presence.ts';
export type { UsersApi } from './state/users.ts';
export type { Store } from './store.ts';
export type { Clock } from './clock.ts';
export type { ConnectionState, SocketLike } from './connection/connection.ts';
export type { TokenProvider } from './connection/tokens.ts';
export type { WakeSource } from './connection/wake.ts';
export { compose } from './features/compose.ts';
export type { Composition } from './features/compose.ts';
export { ParleyError } from './errors.ts';
export type { ClientErrorCode, ErrorInfo } from './errors.ts';
export { memoryStorage } from './outbox/memory.ts';
export type { Draft, OutboxEntry, Storage } from './outbox/storage.ts';
export type { Edit, NewConversation } from './api.ts';
export type { NewUpload, UploadFile, UploadOptions, Uploads, UploadTicket } from './features/uploads.ts';
export type {
  Attachment,
  Conversation as ConversationRecord,
  ConversationListItem,
  ConversationPreview,
  ConversationRules,
  ConversationRulesChange,
  ErrorCode,
  InviteLink,
  Member,
  Mention,
  Message,
  MessageOrTombstone,
  CreatedInviteLink,
  NewPoll,
  Poll,
  NotificationLevel,
  PresenceItem,
  Reaction,
  ReactionCount,
  Reactions,
  Report,
  ReportReason,
  Restriction,
  Tombstone,
  User,
  VoteCount,
} from './types.ts';
