import { ApiError, limits } from '@parley/protocol';
import type { Input, Member, Output, Role } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Person } from '../../log/catalogue.ts';
import { restricted } from '../../log/refusals.ts';
import type { LockedConversation } from '../../log/sql/lock.ts';
import { record } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { record as noteChange } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import {
  lockForChange,
  readable,
  requireGroup,
  requireModerator,
  requireOwner,
  requireWelcome,
} from './access.ts';
import type { LockedAccess } from './access.ts';
import { membersChanged } from './joining.ts';
import { insertMembers } from './sql.ts';
import { happened } from '../happenings.ts';
import { isString, listPage } from '../pages.ts';
import { resolveUsers } from '../users/operations.ts';
import { findUser } from '../users/sql.ts';
import * as sql from './sql/members.ts';
import { bansOf, liftBans } from './sql/restrictions.ts';

async function memberNamed(ctx: Context, tx: Tx, conv: LockedConversation, userId: string) {
  const user = await findUser(tx, ctx.env.no, userId);
  const [member] = user ? await sql.findMembers(tx, ctx.env.no, conv.no, [user.no]) : [];
  if (member) return member;
  throw new ApiError('not_found', { message: 'The user is not a member of the conversation.' });
}

function requireRoom(members: number): void {
  if (members > limits.groupMembers)
    throw invalid('userIds', `A group has at most ${limits.groupMembers} members.`);
}

export async function list(ctx: Context, input: Input<'members.list'>): Promise<Output<'members.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  return listPage(
    input,
    isString,
    (after, most) => sql.listMembers(ctx.db, ctx.env.no, conv.no, after ?? '', most),
    (m) => m.userId,
    (m) => m,
  );
}

export async function add(ctx: Context, input: Input<'members.add'>): Promise<Output<'members.add'>> {
  const ids = [...new Set(input.userIds)];
  requireRoom(ids.length);
  return ctx.db.tx(async (tx) => {
    const env = ctx.env.no;
    const access = await lockForChange(ctx, tx, input.conversationId);
    const { conv, actor } = access;
    requireGroup(conv);
    requireOwner(access);
    const users = await resolveUsers(ctx, tx, ids);
    const numbers = ids.map((id) => users.get(id)!);
    await requireWelcome(ctx, tx, numbers);
    await passBans(ctx, tx, conv, numbers);
    const [already] = await sql.findMembers(tx, env, conv.no, numbers);
    if (already) throw new ApiError('already_member', { message: `${already.userId} is a member already.` });
    requireRoom((await sql.countMembers(tx, env, conv.no)) + ids.length);
    const added = ids.map((id) => ({ no: users.get(id)!, id }));
    const [seq] = await record(ctx.services.log, tx, conv, [{ type: 'member.added', actor, users: added }]);
    await insertMembers(tx, env, conv.no, numbers, null, seq!);
    await membersChanged(tx, conv);
    for (const user of numbers)
      await noteChange(ctx, tx, { action: 'members.add', user, after: { conversationId: conv.id } });
    return { data: (await sql.findMembers(tx, env, conv.no, numbers)).map(viewMember) };
  });
}

/** restrictions#ban: users add nobody who is banned; a server that does lifts the ban. */
async function passBans(ctx: Context, tx: Tx, conv: LockedConversation, users: number[]): Promise<void> {
  if (!ctx.caller.user) return liftBans(tx, conv.env, conv.no, users);
  const bans = await bansOf(tx, conv.env, conv.no, users);
  if (bans.size > 0) throw restricted('A user is banned from the conversation.', Math.max(...bans.values()));
}

const viewMember = ({ no: _, ...member }: Member & { no: number }): Member => member;

export async function remove(ctx: Context, input: Input<'members.remove'>): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const access = await lockForChange(ctx, tx, input.conversationId);
    requireGroup(access.conv);
    const leaving = access.actor?.id === input.userId;
    if (!leaving) requireModerator(access, 'member');
    const member = await memberNamed(ctx, tx, access.conv, input.userId);
    if (!leaving) requireModerator(access, member.role);
    const after = { conversationId: access.conv.id };
    await noteChange(ctx, tx, { action: 'members.remove', user: member.no, after });
    await removeFromGroup(ctx, tx, access.conv, {
      user: { no: member.no, id: member.userId },
      actor: access.actor,
      reason: leaving ? 'left' : 'removed',
    });
  });
}

/** Ends a membership in a locked group, with its event. */
export async function removeFromGroup(
  ctx: Pick<Context, 'services'>,
  tx: Tx,
  conv: LockedConversation,
  change: { user: Person; actor: Person | null; reason: 'left' | 'removed'; banned?: true },
): Promise<void> {
  const { user, actor, ...data } = change;
  await sql.removeMember(tx, conv.env, conv.no, user.no);
  await membersChanged(tx, conv);
  await record(ctx.services.log, tx, conv, [{ type: 'member.removed', actor, users: [user], data }]);
  await happened(ctx, tx, 'memberRemoved', { env: conv.env, conv: conv.no, user: user.no });
}

export async function update(ctx: Context, input: Input<'members.update'>): Promise<Member> {
  return ctx.db.tx(async (tx) => {
    const access = await lockForChange(ctx, tx, input.conversationId);
    const { conv, actor } = access;
    requireGroup(conv);
    requireRoleSetter(ctx, access, input.role);
    const member = await memberNamed(ctx, tx, conv, input.userId);
    if (actor && member.role === 'owner')
      throw new ApiError('forbidden', { message: 'Only a server may change the role of an owner.' });
    if (member.role !== input.role) {
      await sql.setRole(tx, ctx.env.no, conv.no, member.no, input.role);
      const users = [{ no: member.no, id: member.userId }];
      await record(ctx.services.log, tx, conv, [
        { type: 'member.updated', actor, users, data: { role: input.role } },
      ]);
    }
    return { ...viewMember(member), role: input.role };
  });
}

/** members#role: the server, and owners where the environment says so; those make no owners. */
function requireRoleSetter(ctx: Context, access: LockedAccess, role: Role): void {
  if (!access.actor) return;
  if (!ctx.env.settings.ownersSetRoles)
    throw new ApiError('forbidden', { message: 'Only a server may set roles in this environment.' });
  requireOwner(access);
  if (role === 'owner')
    throw new ApiError('forbidden', { param: 'role', message: 'Only a server may make an owner.' });
}
