import type { Input, OperationName, Operations } from '@parley/protocol';
import * as account from './accounts/operations/account.ts';
import * as invitations from './accounts/operations/invitations.ts';
import * as organizations from './accounts/operations/organizations.ts';
import * as password from './accounts/operations/password.ts';
import * as session from './accounts/operations/session.ts';
import * as analytics from './analytics/operations.ts';
import * as blocks from './blocks/operations.ts';
import * as calls from './calls/operations.ts';
import { commands } from './commands.ts';
import type { CommandContext, CommandName, Handler } from './commands.ts';
import type { AccountContext, Context, ControlContext, OrganizationContext } from './context.ts';
import { browse } from './conversations/browse.ts';
import * as joining from './conversations/joining.ts';
import * as conversations from './conversations/operations.ts';
import * as restrictions from './conversations/restrictions.ts';
import * as diagnostics from './diagnostics/operations.ts';
import * as erasure from './erasure/operations.ts';
import * as events from './events/operations.ts';
import * as hooks from './hooks/operations.ts';
import * as live from './live/operations.ts';
import * as logs from './logs/operations.ts';
import * as members from './conversations/members.ts';
import * as mentions from './mentions/operations.ts';
import { edit, prepareEdit } from './messages/edit.ts';
import * as messages from './messages/operations.ts';
import { versions } from './messages/versions.ts';
import * as pins from './pins/operations.ts';
import * as polls from './polls/operations.ts';
import * as push from './push/operations.ts';
import * as reactions from './reactions/operations.ts';
import * as receipts from './receipts/operations.ts';
import * as mediaStorage from './storage/media-operations.ts';
import * as reports from './reports/operations.ts';
import * as storage from './storage/operations.ts';
import * as sync from './sync/operations.ts';
import * as tenancy from './tenancy/operations.ts';
import * as uploads from './uploads/operations.ts';
import * as users from './users/operations.ts';
import * as slots from './storage/slot-operations.ts';
import * as webhooks from './webhooks/operations.ts';
import * as words from './words/operations.ts';

type DashboardContext<N extends OperationName> = {
  account: AccountContext;
  organization: OrganizationContext;
  organizations: ControlContext;
  environment: Context;
}[Operations[N]['scope']];
type ContextOf<N extends OperationName> = Operations[N]['plane'] extends 'tenant'
  ? Context
  : N extends CommandName
    ? CommandContext<N>
    : DashboardContext<N>;

export type Handlers = { [N in OperationName]: Handler<ContextOf<N>, N> };

/** Which function runs each operation of the protocol table. */
export const handlers = {
  ...commands,
  'session.create': session.create,
  'session.passkeyOptions': session.passkeyOptions,
  'session.createWithPasskey': session.createWithPasskey,
  'session.get': session.get,
  'session.reauth': session.reauth,
  'session.delete': session.remove,
  'password.forgot': password.forgot,
  'password.reset': password.reset,
  'account.get': account.get,
  'account.update': account.update,
  'account.changePassword': account.changePassword,
  'account.beginTotp': account.beginTotp,
  'account.confirmTotp': account.confirmTotp,
  'account.removeTotp': account.removeTotp,
  'account.renewRecoveryCodes': account.renewRecoveryCodes,
  'account.listPasskeys': account.listPasskeys,
  'account.passkeyOptions': account.passkeyOptions,
  'account.addPasskey': account.addPasskey,
  'account.removePasskey': account.removePasskey,
  'account.listSessions': account.listOwnSessions,
  'account.endSession': account.endOwnSession,
  'account.endOtherSessions': account.endOthers,
  'organizations.get': organizations.get,
  'organizations.update': organizations.update,
  'organizations.delete': organizations.remove,
  'organizations.listMembers': organizations.listMembers,
  'organizations.updateMember': organizations.updateMember,
  'organizations.removeMember': organizations.removeMember,
  'organizations.leave': organizations.leave,
  'invitations.list': invitations.list,
  'invitations.create': invitations.create,
  'invitations.delete': invitations.remove,
  'invitations.preview': invitations.preview,
  'invitations.accept': invitations.accept,
  'accounts.signUp': invitations.signUp,
  'environments.get': tenancy.getEnvironment,
  'users.upsert': users.upsert,
  'users.get': users.get,
  'users.lookup': users.lookup,
  'users.list': users.list,
  'users.deactivate': users.deactivate,
  'users.reactivate': users.reactivate,
  'users.revokeTokens': users.revokeTokens,
  'users.erase': erasure.erase,
  'users.sessions': live.sessionsOf,
  'users.endSession': live.endSession,
  'users.devices': push.devicesOf,
  'users.removeDevice': push.removeDevice,
  'conversations.create': conversations.create,
  'conversations.list': conversations.list,
  'explorer.conversations': browse,
  'conversations.get': conversations.get,
  'conversations.update': conversations.update,
  'conversations.delete': conversations.remove,
  'conversations.mute': conversations.mute,
  'conversations.unmute': conversations.unmute,
  'conversations.setLevel': conversations.setLevel,
  'conversations.read': receipts.read,
  'members.list': members.list,
  'members.add': members.add,
  'members.remove': members.remove,
  'members.update': members.update,
  'messages.send': messages.send,
  'messages.list': messages.list,
  'messages.get': messages.get,
  'messages.update': edit,
  'messages.delete': messages.remove,
  'messages.versions': versions,
  'blocks.add': blocks.add,
  'blocks.remove': blocks.remove,
  'blocks.list': blocks.list,
  'restrictions.set': restrictions.set,
  'restrictions.remove': restrictions.remove,
  'restrictions.list': restrictions.list,
  'users.listRestrictions': restrictions.listOfUser,
  'conversations.join': joining.join,
  'conversations.preview': joining.preview,
  'conversations.discover': joining.discover,
  'invites.create': joining.createInvite,
  'invites.list': joining.listInvites,
  'invites.delete': joining.deleteInvite,
  'invites.preview': joining.previewInvite,
  'invites.accept': joining.accept,
  'users.silence': restrictions.silenceUser,
  'users.unsilence': restrictions.unsilenceUser,
  'reports.create': reports.create,
  'reports.list': reports.list,
  'reports.update': reports.update,
  'wordLists.set': words.set,
  'wordLists.get': words.get,
  'wordLists.list': words.list,
  'wordLists.delete': words.remove,
  'hooks.set': hooks.set,
  'hooks.get': hooks.get,
  'hooks.list': hooks.list,
  'hooks.delete': hooks.remove,
  'hooks.test': hooks.test,
  'hooks.rotateSecret': hooks.rotateSecret,
  'hooks.stats': hooks.stats,
  'reactions.set': reactions.set,
  'reactions.remove': reactions.remove,
  'reactions.list': reactions.list,
  'pins.set': pins.set,
  'pins.remove': pins.remove,
  'pins.list': pins.list,
  'polls.vote': polls.vote,
  'polls.close': polls.close,
  'mentions.list': mentions.list,
  sync: sync.sync,
  'events.list': events.list,
  'webhooks.create': webhooks.create,
  'webhooks.list': webhooks.list,
  'webhooks.get': webhooks.get,
  'webhooks.update': webhooks.update,
  'webhooks.delete': webhooks.remove,
  'webhooks.rotateSecret': webhooks.rotateSecret,
  'webhooks.test': webhooks.test,
  'webhooks.deliveries': webhooks.deliveries,
  'webhooks.replay': webhooks.replay,
  'webhooks.replayFailed': webhooks.replayFailed,
  'uploads.create': uploads.create,
  'uploads.complete': uploads.complete,
  'attachments.url': uploads.url,
  'calls.start': calls.start,
  'calls.list': calls.list,
  'calls.get': calls.get,
  'calls.join': calls.join,
  'calls.decline': calls.decline,
  'calls.leave': calls.leave,
  'calls.end': calls.end,
  'calls.remove': calls.remove,
  'calls.mute': calls.mute,
  'storage.get': storage.get,
  'storage.update': storage.update,
  'storage.setDatabase': slots.setDatabase,
  'storage.rotateSecret': slots.rotateSecret,
  'storage.testDatabase': slots.testDatabase,
  'storage.migrateDatabase': slots.migrateDatabase,
  'storage.promote': storage.promote,
  'storage.resync': storage.resync,
  'storage.setMedia': mediaStorage.setMedia,
  'storage.testMedia': mediaStorage.testMedia,
  'storage.removeMedia': mediaStorage.removeMedia,
  'push.register': push.register,
  'push.unregister': push.unregister,
  'push.test': push.test,
  'logs.list': logs.list,
  'overview.get': logs.overview,
  'live.nodes': live.nodes,
  'live.sockets': live.sockets,
  'analytics.get': analytics.analytics,
  'usage.get': analytics.usage,
  'live.trace': live.trace,
  'diagnostics.delivery': diagnostics.delivery,
} satisfies Handlers;

type Turn = <T>(work: () => Promise<T>) => Promise<T>;
/**
 * What waits for somebody outside before an operation has its turn and, under an Idempotency-Key, its transaction: it
 * holds neither meanwhile. `briefly` runs short work in a turn of its own. Its result runs instead of the operation's
 * function; null if there was nothing to wait for.
 */
export type Preparation<C = Context, I = never> = (
  ctx: C,
  input: I,
  briefly: Turn,
) => Promise<((inner: C) => Promise<unknown>) | null>;

export const preparations: { [N in OperationName]?: Preparation<ContextOf<N>, Input<N>> } = {
  'messages.update': prepareEdit,
};

/** The exact return type of each handler, from which the socket makes its acks. */
export type TypedHandlers = typeof handlers;
