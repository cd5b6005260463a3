import { ApiError, limits } from '@parley/protocol';
import type { Conversation, Input, Notifications, Output } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import { lockConversation } from '../../log/sql/lock.ts';
import { record } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { record as noteChange } from '../audit/operations.ts';
import { flagPair, pairBlocked } from '../blocks/sql.ts';
import { Reply } from '../context.ts';
import type { Context } from '../context.ts';
import { directId } from '../direct-id.ts';
import { requireFeature } from '../enabled.ts';
import { happened } from '../happenings.ts';
import { defaultLevelOf, levelNumbers, levelOf } from '../levels.ts';
import type { LevelRow } from '../levels.ts';
import { parseMetadata } from '../metadata.ts';
import { pageLimit } from '../pages.ts';
import { moment } from '../time.ts';
import { existingUser, resolveUsers } from '../users/operations.ts';
import { personalChange } from '../users/personal.ts';
import { lockUsers } from '../users/sql.ts';
import {
  lockForChange,
  readable,
  requireGroup,
  requireOpen,
  requireOwner,
  requireWelcome,
} from './access.ts';
import { listingChanged } from './joining.ts';
import { parseRules, setRules } from './rules.ts';
import { listConversations } from './sql/list.ts';
import * as sql from './sql.ts';

export async function create(
  ctx: Context,
  input: Input<'conversations.create'>,
): Promise<Output<'conversations.create'> | Reply<Conversation>> {
  const members = new Set(input.members);
  if (ctx.caller.user) {
    if (input.ownerId !== undefined)
      throw new ApiError('forbidden', { param: 'ownerId', message: 'Only a server may name the owner.' });
    const allowed = ctx.env.settings.clientConversationCreation;
    if (allowed === 'none' || (allowed === 'direct' && input.type === 'group'))
      throw new ApiError('forbidden', {
        message: 'Clients may not create such conversations in this environment.',
      });
    members.add(ctx.caller.user.id);
  } else if (input.ownerId !== undefined) {
    if (input.type === 'direct') throw invalid('ownerId', 'A direct conversation has no owner.');
    members.add(input.ownerId);
  }
  if (input.type === 'direct' && members.size !== 2)
    throw invalid('members', 'A direct conversation has exactly two different members.');
  if (members.size < 1 || members.size > limits.groupMembers)
    throw invalid('members', `A group has 1 to ${limits.groupMembers} members.`);

  const ruled = newRules(ctx, input);

  return ctx.db.tx(async (tx) => {
    const users = await resolveUsers(ctx, tx, [...members]);
    const numbers = [...users.values()];
    if (input.type === 'group') await requireWelcome(ctx, tx, numbers);
    const ownerId = ctx.caller.user?.id ?? input.ownerId;
    const owner = input.type === 'group' && ownerId !== undefined ? users.get(ownerId)! : null;
    const id =
      input.type === 'direct'
        ? directId(ctx.env.no, numbers[0]!, numbers[1]!)
        : ctx.services.ids.make('conversation');
    const created = await sql.insertConversation(tx, ctx.env.no, {
      id,
      type: input.type,
      name: input.name ?? null,
      metadata: input.metadata ? JSON.stringify(input.metadata) : null,
      ...ruled,
      creator: ctx.caller.user?.no ?? null,
    });
    if (!created) return existingDirect(ctx, tx, id);
    if (input.type === 'direct') await openPair(ctx, tx, created.no, numbers[0]!, numbers[1]!);
    if (ctx.caller.user) await requireRoom(ctx, tx, ctx.caller.user.no);
    await sql.insertMembers(tx, ctx.env.no, created.no, numbers, owner, 0);
    await listingChanged(tx, { env: ctx.env.no, ...created }, { rules: null });
    await noteChange(ctx, tx, {
      action: 'conversations.create',
      target: id,
      after: { type: input.type, members: numbers.length },
    });
    return appendCreated(ctx, tx, id);
  });
}

function newRules(
  ctx: Context,
  { type, rules }: Input<'conversations.create'>,
): { rules: string | null; flags: number } {
  const ruled = { rules: null, flags: 0 };
  if (!rules) return ruled;
  requireFeature(ctx.env, 'rules');
  if (type === 'direct') throw invalid('rules', 'Rules are for groups.');
  setRules(ruled, rules);
  return ruled;
}

/**
 * Clients may create only so many conversations, because each makes the logins and syncs of its members slower for
 * ever. Servers are bounded by the rate of their key alone.
 */
async function requireRoom(ctx: Context, tx: Tx, user: number): Promise<void> {
  const { clientConversationsPerHour: perHour, clientConversations: inAll } = limits;
  const { waitMs, full } = await sql.roomToCreate(tx, ctx.env.no, user, { perHour, inAll });
  if (waitMs > 0)
    throw new ApiError('rate_limited', {
      message: `A user's clients create at most ${perHour} conversations in an hour.`,
      retryAfterMs: waitMs,
    });
  if (full)
    throw new ApiError('invalid_request', {
      message: `A user's clients create at most ${inAll} conversations.`,
    });
}

/** A new direct conversation of two users of whom one blocks the other: only a server makes it, and it is closed. */
async function openPair(ctx: Context, tx: Tx, conv: number, a: number, b: number): Promise<void> {
  const env = ctx.env.no;
  await lockUsers(tx, env, [a, b]);
  if (!(await pairBlocked(tx, env, a, b))) return;
  if (ctx.caller.user) throw new ApiError('blocked');
  await flagPair(tx, env, conv, a, b);
}

/** Returns the conversation that the pair already has; a deleted one is restored. */
async function existingDirect(ctx: Context, tx: Tx, id: string) {
  const conv = await lockConversation(tx, ctx.env.no, id);
  requireOpen(ctx, conv!);
  if (conv!.deletedAt) {
    await sql.revive(tx, ctx.env.no, conv!.no);
    return appendCreated(ctx, tx, id);
  }
  return new Reply(200, sql.viewConversation(conv!, await sql.listMemberViews(tx, ctx.env.no, conv!.no)));
}

async function appendCreated(ctx: Context, tx: Tx, id: string): Promise<Conversation> {
  const env = ctx.env.no;
  const conv = (await lockConversation(tx, env, id))!;
  const members = await sql.listMembers(tx, env, conv.no);
  const created = sql.viewConversation(conv, members.map(sql.viewMember));
  await record(ctx.services.log, tx, conv, [
    {
      type: 'conversation.created',
      actor: ctx.caller.user,
      users: members.map((m) => ({ no: m.no, id: m.userId })),
      conversation: created,
    },
  ]);
  return { ...created, lastSeq: conv.lastSeq };
}

export async function list(
  ctx: Context,
  input: Input<'conversations.list'>,
): Promise<Output<'conversations.list'>> {
  const user = await listedUser(ctx, input.userId);
  const page = await listConversations(ctx.db, ctx.env.no, user, pageLimit(input.limit), input.cursor, {
    byDefault: ctx.env.settings.defaultLevel,
    now: ctx.services.clock.now(),
  });
  // The dashboard reads message texts only per conversation, where the audit log notes who did.
  if (ctx.caller.person) for (const item of page.data) item.lastMessage = null;
  return page;
}

async function listedUser(ctx: Context, userId: string | undefined): Promise<number> {
  if (ctx.caller.user) {
    if (userId !== undefined && userId !== ctx.caller.user.id)
      throw new ApiError('forbidden', { param: 'userId', message: 'A client lists its own conversations.' });
    return ctx.caller.user.no;
  }
  if (userId === undefined) throw invalid('userId', 'A server must say whose conversations: give userId.');
  return (await existingUser(ctx, ctx.db, userId)).no;
}

export async function get(ctx: Context, input: Input<'conversations.get'>): Promise<Conversation> {
  const row = await readable(ctx, ctx.db, input.conversationId);
  return sql.viewConversation(row, await sql.listMemberViews(ctx.db, ctx.env.no, row.no));
}

export async function update(ctx: Context, input: Input<'conversations.update'>): Promise<Conversation> {
  if (!('name' in input) && !('metadata' in input) && !input.rules)
    throw invalid('name', 'Give name, metadata or rules.');
  if (input.rules) requireFeature(ctx.env, 'rules');
  return ctx.db.tx(async (tx) => {
    const access = await lockForChange(ctx, tx, input.conversationId);
    requireOwner(access);
    const { conv, actor } = access;
    const before = { name: conv.name, metadata: conv.metadata, rules: conv.rules };
    if (input.name !== undefined) conv.name = input.name;
    if (input.metadata !== undefined) conv.metadata = JSON.stringify(input.metadata);
    if (input.rules) {
      requireGroup(conv, 'Rules are for groups.');
      setRules(conv, input.rules);
    }
    const changes = {
      ...(conv.name !== before.name ? { name: conv.name } : {}),
      ...(conv.metadata !== before.metadata ? { metadata: parseMetadata(conv.metadata) } : {}),
      ...(conv.rules !== before.rules ? { rules: parseRules(conv) } : {}),
    };
    const conversation = sql.viewConversation(conv, await sql.listMemberViews(tx, ctx.env.no, conv.no));
    if (Object.keys(changes).length > 0) {
      await sql.updateConversation(tx, ctx.env.no, conv.no, conv);
      await listingChanged(tx, conv, before);
      await noteChange(ctx, tx, {
        action: 'conversations.update',
        target: conv.id,
        before: { name: before.name, rules: parseRules(before) },
        after: { name: conv.name, rules: parseRules(conv) },
      });
      await record(ctx.services.log, tx, conv, [
        { type: 'conversation.updated', actor, conversation, data: changes },
      ]);
    }
    return { ...conversation, lastSeq: conv.lastSeq };
  });
}

export async function remove(ctx: Context, input: Input<'conversations.delete'>): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const env = ctx.env.no;
    const conv = await lockConversation(tx, env, input.conversationId);
    if (!conv) throw notFound('Conversation');
    if (conv.deletedAt) return;
    await sql.markDeleted(tx, env, conv.no, conv.lockedAt);
    await listingChanged(tx, { ...conv, rules: null }, conv);
    await happened(ctx, tx, 'conversationDeleted', { env, conv: conv.no });
    await record(ctx.services.log, tx, conv, [{ type: 'conversation.deleted', actor: null }]);
  });
}

export const mute = async (ctx: Context, input: Input<'conversations.mute'>) =>
  answerMute(await changeLevel(ctx, input.conversationId, muted));
export const unmute = async (ctx: Context, input: Input<'conversations.unmute'>) =>
  answerMute(await changeLevel(ctx, input.conversationId, { ...muted, muted: false }));

const muted: LevelRow = { level: null, muted: true, mutedUntil: null };
const answerMute = ({ conversationId, muted }: Notifications) => ({ conversationId, muted });

export async function setLevel(
  ctx: Context,
  { conversationId, level, until = null }: Input<'conversations.setLevel'>,
): Promise<Notifications> {
  if (level !== 'none') {
    if (until !== null) throw invalid('until', 'Only the level none ends by itself.');
    return changeLevel(ctx, conversationId, { level: levelNumbers[level], muted: false, mutedUntil: null });
  }
  const end = until === null ? null : Date.parse(moment('until', until));
  if (end !== null && !(end > ctx.services.clock.now()))
    throw invalid('until', 'until must be in the future.');
  const mutedUntil = end === null ? null : new Date(end).toISOString();
  return changeLevel(ctx, conversationId, { ...muted, mutedUntil });
}

/** Muting is the level `none`: one state, seen from two sides. @param change with `level` null the one from before stays. */
async function changeLevel(ctx: Context, conversationId: string, change: LevelRow): Promise<Notifications> {
  const row = await readable(ctx, ctx.db, conversationId);
  const next = { ...change, level: change.level ?? row.level };
  const { level, until } = levelOf(
    next,
    defaultLevelOf(row, ctx.env.settings.defaultLevel),
    ctx.services.clock.now(),
  );
  const answer = { conversationId: row.id, level, until, muted: level === 'none' };
  const user = ctx.caller.user?.no;
  const same = row.muted === next.muted && row.mutedUntil === next.mutedUntil && row.level === next.level;
  if (user !== undefined && !same)
    await ctx.db.tx(async (tx) => {
      await personalChange(ctx, tx, user, 'level', answer);
      // This locks the conversation, and comes last, so that senders wait for nothing else.
      await sql.setLevel(tx, ctx.env.no, row.no, user, change);
    });
  return answer;
}
