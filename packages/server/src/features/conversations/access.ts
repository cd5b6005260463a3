import { ApiError } from '@parley/protocol';
import type { Role } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { lockConversation, lockConversationByNo } from '../../log/sql/lock.ts';
import { refusals } from '../../log/refusals.ts';
import { guards } from '../../log/sql/guards.ts';
import type { LockedConversation } from '../../log/sql/lock.ts';
import { blockersOf } from '../blocks/sql.ts';
import type { Caller, Context } from '../context.ts';
import { findConversation } from './sql.ts';
import type { SeenConversation } from './sql.ts';
import { membershipOf } from './sql/members.ts';

/** Only members and the server may see or change a conversation. Ids of other tenants and unknown ids get the same answer. */

export const missing = () => notFound('Conversation');

export async function readable(ctx: Context, db: Queryable, id: string): Promise<SeenConversation> {
  const user = ctx.caller.user?.no ?? null;
  const row = await findConversation(db, ctx.env.no, id, user);
  if (!row || (user !== null && row.deletedAt)) throw missing();
  if (user !== null && row.role === null) throw new ApiError('not_member');
  return row;
}

/** A conversation that the caller may change, locked until the transaction ends. */
export interface LockedAccess {
  conv: LockedConversation;
  /** The caller's role; null for the server. */
  role: Role | null;
  /** The acting user; null for the server. */
  actor: { no: number; id: string } | null;
  /** For how many milliseconds the caller is silenced; null if it is not. */
  silencedMs: number | null;
}

/** Locks the conversation for a change, after checking that the caller may see it. */
export async function lockForChange(
  ctx: Context,
  tx: Tx,
  conversation: string | { no: number },
): Promise<LockedAccess> {
  const env = ctx.env.no;
  const conv =
    typeof conversation === 'string'
      ? await lockConversation(tx, env, conversation)
      : await lockConversationByNo(tx, env, conversation.no);
  if (!conv || conv.deletedAt) throw missing();
  if (!ctx.caller.user) return { conv, role: null, actor: null, silencedMs: null };
  const member = await membershipOf(tx, env, conv.no, ctx.caller.user.no);
  if (!member) throw new ApiError('not_member');
  return { conv, ...member, actor: ctx.caller.user };
}

/**
 * Throws unless the caller may write in the conversation, whatever it writes: messages have the same rules in
 * append_rules.sql.ts. They bind users alone.
 */
export function requireWriting({ conv, actor, silencedMs }: LockedAccess): void {
  requireOpen({ caller: { user: actor } }, conv);
  if (silencedMs !== null) throw refusals.restricted(silencedMs);
}

/** The same for a conversation that is not locked. */
export async function requireWritingIn(ctx: Context, db: Queryable, conv: SeenConversation): Promise<void> {
  if (!ctx.caller.user) return;
  requireOpen(ctx, conv);
  const member = await membershipOf(db, ctx.env.no, conv.no, ctx.caller.user.no);
  if (member && member.silencedMs !== null) throw refusals.restricted(member.silencedMs);
}

/** Throws `blocked` to users of whom one blocks the other. */
export function requireOpen({ caller }: { caller: Pick<Caller, 'user'> }, conv: { flags: number }): void {
  if (caller.user && (conv.flags & guards.blockedPair) !== 0) throw new ApiError('blocked');
}

/** blocks#adding: a user adds nobody who blocks it. */
export async function requireWelcome(ctx: Context, tx: Tx, users: readonly number[]): Promise<void> {
  if (ctx.caller.user && (await blockersOf(tx, ctx.env.no, ctx.caller.user.no, users)).size > 0)
    throw new ApiError('blocked');
}

export function requireGroup(
  conv: LockedConversation,
  message = 'Members of a direct conversation cannot be changed.',
): void {
  if (conv.type === 'direct') throw new ApiError('invalid_request', { message });
}

/** Throws `forbidden` unless the caller is the owner or the server. */
export function requireOwner({ role, actor }: LockedAccess): void {
  if (actor && role !== 'owner') throw new ApiError('forbidden', { message: 'Only the owner may do this.' });
}

/** members#moderators: whether the caller keeps order in the conversation: its owner, a moderator, or the server. */
export const moderates = ({ role, actor }: Pick<LockedAccess, 'role' | 'actor'>): boolean =>
  actor === null || role === 'owner' || role === 'moderator';

/** Throws `forbidden` unless the caller may act against a member of this role: a moderator may not against its equals. */
export function requireModerator(access: Pick<LockedAccess, 'role' | 'actor'>, against: Role): void {
  if (!moderates(access))
    throw new ApiError('forbidden', { message: 'Only the owner or a moderator may do this.' });
  if (access.role === 'moderator' && against !== 'member')
    throw new ApiError('forbidden', {
      message: 'A moderator may not do this to the owner or another moderator.',
    });
}
