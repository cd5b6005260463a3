import * as accounts from './accounts.ts';
import * as calls from './calls.ts';
import * as conversations from './conversations.ts';
import * as environments from './environments.ts';
import * as logs from './logs.ts';
import * as messages from './messages.ts';
import * as organizations from './organizations.ts';
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
  'calls.start': calls.callsStart,
  'calls.list': calls.callsList,
  'calls.get': calls.callsGet,
  'calls.join': calls.callsJoin,
  'calls.decline': calls.callsDecline,
  'calls.leave': calls.callsLeave,
  'calls.end': calls.callsEnd,
  'calls.remove': calls.callsRemove,
  'calls.mute': calls.callsMute,
  'session.create': accounts.sessionCreate,
  'session.passkeyOptions': accounts.sessionPasskeyOptions,
  'session.createWithPasskey': accounts.sessionCreateWithPasskey,
  'session.get': accounts.sessionGet,
  'session.reauth': accounts.sessionReauth,
  'session.delete': accounts.sessionDelete,
  'password.forgot': accounts.passwordForgot,
  'password.reset': accounts.passwordReset,
  'account.get': accounts.accountGet,
  'account.update': accounts.accountUpdate,
  'account.changePassword': accounts.accountChangePassword,
  'account.beginTotp': accounts.accountBeginTotp,
  'account.confirmTotp': accounts.accountConfirmTotp,
  'account.removeTotp': accounts.accountRemoveTotp,
  'account.renewRecoveryCodes': accounts.accountRenewRecoveryCodes,
  'account.listPasskeys': accounts.accountListPasskeys,
  'account.passkeyOptions': accounts.accountPasskeyOptions,
  'account.addPasskey': accounts.accountAddPasskey,
  'account.removePasskey': accounts.accountRemovePasskey,
  'account.listSessions': accounts.accountListSessions,
  'account.endSession': accounts.accountEndSession,
  'account.endOtherSessions': accounts.accountEndOtherSessions,
  'accounts.reset': accounts.accountsReset,
  'accounts.endSessions': accounts.accountsEndSessions,
  'accounts.removeSecondFactor': accounts.accountsRemoveSecondFactor,
  'organizations.get': organizations.organizationsGet,
  'organizations.update': organizations.organizationsUpdate,
  'organizations.listMembers': organizations.organizationsListMembers,
  'organizations.updateMember': organizations.organizationsUpdateMember,
  'organizations.removeMember': organizations.organizationsRemoveMember,
  'organizations.leave': organizations.organizationsLeave,
  'invitations.list': organizations.invitationsList,
  'invitations.create': organizations.invitationsCreate,
  'invitations.delete': organizations.invitationsDelete,
  'invitations.preview': organizations.invitationsPreview,
  'invitations.accept': organizations.invitationsAccept,
  'accounts.signUp': organizations.accountsSignUp,
  'environments.list': environments.environmentsList,
  'environments.create': environments.environmentsCreate,
  'environments.get': environments.environmentsGet,
  'environments.update': environments.environmentsUpdate,
  'keys.list': environments.keysList,
  'keys.create': environments.keysCreate,
  'keys.revoke': environments.keysRevoke,
  'audit.list': environments.auditList,
  'logs.list': logs.logsList,
  'overview.get': logs.overviewGet,
} as const;

export type Operations = typeof operations;
export type OperationName = keyof Operations;
export type Input<N extends OperationName> = InputOf<Operations[N]>;
export type Output<N extends OperationName> = OutputOf<Operations[N]>;
/** Those that somebody can call over HTTP. The others wait on the command line alone, and have no endpoint. */
export const operationList: readonly Operation[] = Object.values<Operation>(operations).filter(
  (op) => httpCallers(op).length > 0,
);
