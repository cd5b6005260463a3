import * as conversations from './conversations.ts';
import * as environments from './environments.ts';
import * as messages from './messages.ts';
import * as push from './push.ts';
import * as uploads from './uploads.ts';
import * as users from './users.ts';
import * as webhooks from './webhooks.ts';
import { httpCallers } from './define.ts';
import type { InputOf, Operation, OutputOf } from './define.ts';

/** Every operation, once. Bindings, documents and SDKs are derived from this table. */
export const operations = {
  'tokens.create': users.tokensCreate,
  'users.upsert': users.usersUpsert,
  'users.get': users.usersGet,
  'users.list': users.usersList,
  'users.deactivate': users.usersDeactivate,
  'users.reactivate': users.usersReactivate,
  'users.revokeTokens': users.usersRevokeTokens,
  'users.erase': users.usersErase,
  'conversations.create': conversations.conversationsCreate,
  'conversations.list': conversations.conversationsList,
  'conversations.get': conversations.conversationsGet,
  'conversations.update': conversations.conversationsUpdate,
  'conversations.delete': conversations.conversationsDelete,
  'conversations.mute': conversations.conversationsMute,
  'conversations.unmute': conversations.conversationsUnmute,
  'conversations.read': conversations.conversationsRead,
  'members.list': conversations.membersList,
  'members.add': conversations.membersAdd,
  'members.remove': conversations.membersRemove,
  'members.update': conversations.membersUpdate,
  'messages.send': messages.messagesSend,
  'messages.list': messages.messagesList,
  'messages.get': messages.messagesGet,
  'messages.update': messages.messagesUpdate,
  'messages.delete': messages.messagesDelete,
  sync: messages.sync,
  'events.list': messages.eventsList,
  'webhooks.create': webhooks.webhooksCreate,
  'webhooks.list': webhooks.webhooksList,
  'webhooks.get': webhooks.webhooksGet,
  'webhooks.update': webhooks.webhooksUpdate,
  'webhooks.delete': webhooks.webhooksDelete,
  'webhooks.rotateSecret': webhooks.webhooksRotateSecret,
  'webhooks.test': webhooks.webhooksTest,
  'webhooks.deliveries': webhooks.webhooksDeliveries,
  'webhooks.replay': webhooks.webhooksReplay,
  'uploads.create': uploads.uploadsCreate,
  'uploads.complete': uploads.uploadsComplete,
  'attachments.url': uploads.attachmentsUrl,
  'push.register': push.pushRegister,
  'push.unregister': push.pushUnregister,
  'push.listCredentials': push.pushListCredentials,
  'push.setCredentials': push.pushSetCredentials,
  'push.removeCredentials': push.pushRemoveCredentials,
  'environments.list': environments.environmentsList,
  'environments.create': environments.environmentsCreate,
  'environments.update': environments.environmentsUpdate,
  'keys.list': environments.keysList,
  'keys.create': environments.keysCreate,
  'keys.revoke': environments.keysRevoke,
  'audit.list': environments.auditList,
} as const;

export type Operations = typeof operations;
export type OperationName = keyof Operations;
export type Input<N extends OperationName> = InputOf<Operations[N]>;
export type Output<N extends OperationName> = OutputOf<Operations[N]>;
/** Those that somebody can call over HTTP. The others wait on the command line alone, and have no endpoint. */
export const operationList: readonly Operation[] = Object.values<Operation>(operations).filter(
  (op) => httpCallers(op).length > 0,
);
