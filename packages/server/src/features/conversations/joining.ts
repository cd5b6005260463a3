import { createHash } from 'node:crypto';
import { ApiError, limits } from '@parley/protocol';
import type { Conversation, ConversationPreview, Input, CreatedInviteLink, Output } from '@parley/protocol';
import { limitReached } from '../../platform/api-errors.ts';
import { restricted } from '../../log/refusals.ts';
import { record } from '../../log/record.ts';
import { recordCounts } from '../../log/sql/activity-counts.ts';
import { lockConversationByNo } from '../../log/sql/lock.ts';
import type { LockedConversation } from '../../log/sql/lock.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { parseMetadata } from '../metadata.ts';
import { isInteger, isShortInteger, listPage } from '../pages.ts';
import { wordsOf } from '../fold.ts';
import { lockForChange, missing, readable, requireGroup, requireModerator } from './access.ts';
import type { LockedAccess } from './access.ts';
import { parseRules, rulesOf } from './rules.ts';
import { findConversation, insertMembers, listMemberViews, viewConversation } from './sql.ts';
import type { ConversationRow } from './sql.ts';
import * as invites from './sql/invites.ts';
import * as listing from './sql/listing.ts';
import type { ListedPlace } from './sql/listing.ts';
import { countMembers } from './sql/members.ts';
import { bansOf } from './sql/restrictions.ts';

/** Groups that people can join: joining.md. */

/** Of a link that ended, is used up, was revoked or never was. */
const noLink = () => new ApiError('not_found', { message: 'There is no such link.' });

/** A token has 128 random bits, so a plain hash of it tells nothing. */
const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

const view = async (ctx: Context, db: Queryable, conv: ConversationRow): Promise<Conversation> =>
  viewConversation(conv, await listMemberViews(db, ctx.env.no, conv.no));

export const join = (ctx: Context, { conversationId }: Input<'conversations.join'>): Promise<Conversation> =>
  entering(ctx, async (tx, user) => {
    const found = await findConversation(tx, ctx.env.no, conversationId, user);
    // Who may not join takes no lock.
    if (!found || found.deletedAt || (found.role === null && rulesOf(found).joining !== 'open'))
      throw missing();
    if (found.role !== null) return view(ctx, tx, found);
    return enter(ctx, tx, found.no, 'join', (conv) => {
      if (!conv || rulesOf(conv).joining !== 'open') throw missing();
      return conv;
    });
  });

export const accept = (ctx: Context, { token }: Input<'invites.accept'>): Promise<Conversation> =>
  entering(ctx, async (tx) => {
    const hash = hashOf(token);
    // Whoever came in by it may repeat that, even if it works for nobody else.
    const found = await invites.invitedTo(tx, ctx.env.no, hash, ctx.caller.user!.no);
    if (!found) throw noLink();
    return enter(
      ctx,
      tx,
      found.no,
      'link',
      (conv) => {
        if (!conv || rulesOf(conv).joining === 'closed') throw noLink();
        return conv;
      },
      async () => {
        if (!(await invites.useInvite(tx, ctx.env.no, hash))) throw noLink();
      },
    );
  });

/** Runs in a transaction in which the user cannot be erased. */
const entering = (
  ctx: Context,
  run: (tx: Tx, user: number) => Promise<Conversation>,
): Promise<Conversation> =>
  ctx.db.tx(async (tx) => {
    const { no } = ctx.caller.user!;
    if (!(await invites.holdUser(tx, ctx.env.no, no))) throw missing();
    return run(tx, no);
  });

/**
 * Makes the caller a member, if it is not banned and the group has room.
 * @param check gets the conversation as it is under the lock, which nobody changes until the end.
 * @param use called once it is certain that the caller becomes a member.
 */
async function enter(
  ctx: Context,
  tx: Tx,
  no: number,
  via: 'join' | 'link',
  check: (conv: LockedConversation | null) => LockedConversation,
  use: () => Promise<void> = async () => undefined,
): Promise<Conversation> {
  const env = ctx.env.no;
  const user = ctx.caller.user!;
  const held = await lockConversationByNo(tx, env, no);
  const conv = check(held && !held.deletedAt ? held : null);
  const { role } = (await findConversation(tx, env, conv.id, user.no))!;
  if (role !== null) return view(ctx, tx, conv);
  const ban = (await bansOf(tx, env, no, [user.no])).get(user.no);
  if (ban !== undefined) throw restricted('The user is banned from the conversation.', ban);
  if ((await countMembers(tx, env, no)) >= limits.groupMembers)
    throw limitReached('members', `A group has at most ${limits.groupMembers} members.`, limits.groupMembers);
  await use();
  const [seq] = await record(ctx.services.log, tx, conv, [
    { type: 'member.added', actor: user, users: [user], data: { via } },
  ]);
  await insertMembers(tx, env, no, [user.no], null, seq!);
  await membersChanged(tx, conv);
  await recordCounts(tx, [{ env, counts: { joins: 1 } }]);
  return view(ctx, tx, conv);
}

/** Must be called when members of a locked conversation came or went. */
export async function membersChanged(tx: Tx, conv: LockedConversation): Promise<void> {
  if (parseRules(conv).listed) await listing.recount(tx, conv.env, conv.no);
}

/** Must be called when the name or the rules of a locked conversation changed; `was` is how it was. */
export async function listingChanged(
  tx: Tx,
  conv: Pick<LockedConversation, 'env' | 'no' | 'name' | 'rules'>,
  was: { rules: string | null },
): Promise<void> {
  if (parseRules(conv).listed)
    await listing.list(tx, conv.env, conv.no, { name: conv.name ?? '', words: listedWords(conv.name ?? '') });
  else if (parseRules(was).listed) await listing.unlist(tx, conv.env, conv.no);
}

/** Longer words are cut, where they are kept and where they are asked for. */
const wordCharacters = 64;
const listedWords = (text: string): string[] => [
  ...new Set(wordsOf(text).map(({ folded }) => [...folded].slice(0, wordCharacters).join(''))),
];

/** How many words of a question count, the last ones: each is looked up for every group that may fit. */
const mostWords = 10;

const viewPreview = (row: ConversationRow & { memberCount: number }): ConversationPreview => ({
  id: row.id,
  type: 'group',
  name: row.name,
  metadata: parseMetadata(row.metadata),
  memberCount: row.memberCount,
  rules: parseRules(row),
});

export async function preview(
  ctx: Context,
  { conversationId }: Input<'conversations.preview'>,
): Promise<ConversationPreview> {
  const row = await listing.findListed(ctx.db, ctx.env.no, conversationId);
  if (!row) throw missing();
  return viewPreview(row);
}

export async function discover(
  ctx: Context,
  input: Input<'conversations.discover'>,
): Promise<Output<'conversations.discover'>> {
  const env = ctx.env.no;
  const words = input.q === undefined ? null : listedWords(input.q).slice(-mostWords);
  return listPage(
    input,
    isPlace,
    async (after, most) => {
      if (words === null) return listing.listed(ctx.db, env, after, most);
      return words.length === 0 ? [] : listing.listedWith(ctx.db, env, words, after, most);
    },
    ({ memberCount, place, no }) => [memberCount, place, no],
    viewPreview,
  );
}

const isPlace = (value: unknown): value is ListedPlace =>
  Array.isArray(value) &&
  value.length === 3 &&
  isShortInteger(value[0]) &&
  typeof value[1] === 'string' &&
  !value[1].includes('\0') &&
  isInteger(value[2]);

export const createInvite = (ctx: Context, input: Input<'invites.create'>): Promise<CreatedInviteLink> =>
  ctx.db.tx(async (tx) => {
    const { conv, actor } = await keeper(ctx, tx, input.conversationId);
    const { joining } = rulesOf(conv);
    if (joining === 'closed')
      throw new ApiError('state_conflict', {
        param: 'rules.joining',
        message: 'Nobody joins this group by a link: set its rule joining to link or open.',
        details: { joining },
      });
    const most = limits.invitesPerConversation;
    if ((await invites.liveInvites(tx, conv.env, conv.no, most)).length >= most)
      throw limitReached('invites', `A group has at most ${most} links that work.`, most);
    const { ids } = ctx.services;
    const token = Buffer.from(ids.random(16)).toString('base64url');
    const link = await invites.insertInvite(tx, {
      env: conv.env,
      conv: conv.no,
      id: ids.make('inviteLink'),
      token: hashOf(token),
      maxUses: input.maxUses ?? null,
      seconds: input.expiresIn ?? limits.inviteSeconds.default,
      creator: actor?.no ?? null,
    });
    return { ...link, token };
  });

/** The group, locked, if the caller keeps order in it. */
async function keeper(ctx: Context, tx: Tx, conversationId: string): Promise<LockedAccess> {
  const access = await lockForChange(ctx, tx, conversationId);
  requireGroup(access.conv, 'Links are for groups.');
  requireModerator(access, 'member');
  return access;
}

export async function listInvites(
  ctx: Context,
  input: Input<'invites.list'>,
): Promise<Output<'invites.list'>> {
  const conv = await readable(ctx, ctx.db, input.conversationId);
  requireModerator({ role: conv.role, actor: ctx.caller.user }, 'member');
  return {
    data: await invites.liveInvites(ctx.db, ctx.env.no, conv.no, limits.invitesPerConversation),
  };
}

export const deleteInvite = (ctx: Context, input: Input<'invites.delete'>): Promise<void> =>
  ctx.db.tx(async (tx) => {
    const { conv } = await keeper(ctx, tx, input.conversationId);
    await invites.deleteInvite(tx, conv.env, conv.no, input.inviteId);
  });

export async function previewInvite(
  ctx: Context,
  { token }: Input<'invites.preview'>,
): Promise<ConversationPreview> {
  const row = await invites.invitedTo(ctx.db, ctx.env.no, hashOf(token));
  if (!row) throw noLink();
  return viewPreview(row);
}
