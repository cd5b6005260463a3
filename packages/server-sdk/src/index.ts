export { ParleyError } from './errors.ts';
export { hookHandler } from './hook.ts';
export type { BeforeSendDecision, BeforeSendEvent, HookHandler, HookOptions } from './hook.ts';
export { Parley } from './parley.ts';
export type { ParleyOptions } from './parley.ts';
export type { Pages } from './pages.ts';
export type { RequestOptions } from './transport.ts';
export { signToken } from './token.ts';
export type { TokenOptions } from './token.ts';
export { verifyWebhook, WebhookVerificationError } from './webhook.ts';
export type { VerifyOptions, WebhookEvent, WebhookHeaders } from './webhook.ts';
export type {
  BeforeSend,
  BeforeSendAnswer,
  Conversation,
  ConversationListItem,
  EventRecord,
  Member,
  Message,
  MessageOrTombstone,
  SyncResult,
  Tombstone,
  User,
} from '@parley/protocol';
