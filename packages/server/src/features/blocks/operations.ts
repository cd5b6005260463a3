import { ApiError, limits } from '@parley/protocol';
import type { Block, Input, Output } from '@parley/protocol';
import { invalid, limitReached } from '../../platform/api-errors.ts';
import { lockConversation } from '../../log/sql/lock.ts';
import type { Person } from '../../log/catalogue.ts';
import { tell } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { directId } from '../direct-id.ts';
import { happened } from '../happenings.ts';
import { isTimedPlace, listPage } from '../pages.ts';
import { existingUser } from '../users/operations.ts';
import { personalChange } from '../users/personal.ts';
import { lockUsers } from '../users/sql.ts';
import * as sql from './sql.ts';

/** Blocks between users (blocks.md). */

export const add = (ctx: Context, input: Input<'blocks.add'>): Promise<Output<'blocks.add'>> =>
  ctx.db.tx(async (tx) => {
    const { user, other } = await peopleOf(ctx, tx, input);
    const { env } = ctx;
    await lockUsers(tx, env.no, [user.no]);
    const before = await sql.findBlock(tx, env.no, user.no, other.no);
    if (before !== undefined) return { userId: other.id, blockedAt: before };
    const blockedAt = await sql.insertBlock(tx, env.no, user.no, other.no, limits.blocksPerUser);
    if (blockedAt === null)
      throw limitReached(
        'userId',
        `A user blocks at most ${limits.blocksPerUser} others.`,
        limits.blocksPerUser,
      );
    const block: Block = { userId: other.id, blockedAt };
    await changed(ctx, tx, user, other, block);
    return block;
  });

export const remove = (ctx: Context, input: Input<'blocks.remove'>): Promise<void> =>
  ctx.db.tx(async (tx) => {
    const { user, other } = await peopleOf(ctx, tx, input);
    await lockUsers(tx, ctx.env.no, [user.no]);
    if (await sql.deleteBlock(tx, ctx.env.no, user.no, other.no))
      await changed(ctx, tx, user, other, { userId: other.id, blockedAt: null });
  });

/** After the user's row is locked and the block was written or removed. */
async function changed(
  ctx: Context,
  tx: Tx,
  user: Person,
  other: Person,
  told: { userId: string; blockedAt: string | null },
): Promise<void> {
  const { env, services } = ctx;
  const blocked = told.blockedAt !== null;
  await personalChange(ctx, tx, user.no, 'block', told);
  await tell(services.log, tx, env.no, 'user.blocked', { users: [user.no, other.no], data: { blocked } });
  const cid = directId(env.no, user.no, other.no);
  // This comes last, so that senders wait for nothing else.
  const conv = await lockConversation(tx, env.no, cid);
  if (conv) {
    await sql.flagPair(tx, env.no, conv.no, user.no, other.no);
    if (blocked) {
      await sql.awaitReactions(tx, env.no, conv.no);
      await happened(ctx, tx, 'pairBlocked', { env: env.no, conv: conv.no, user: user.no });
    }
  }
  tx.afterCommit(() => services.signals.blocked({ user: user.no, other: other.no, cid, blocked }));
}

/** Who blocks, and who is blocked. */
async function peopleOf(
  ctx: Context,
  tx: Tx,
  { userId, byUserId }: { userId: string; byUserId?: string },
): Promise<{ user: Person; other: Person }> {
  const user = await blockerOf(ctx, tx, 'byUserId', byUserId);
  if (user.id === userId) throw invalid('userId', 'Nobody can block themselves.');
  const { no, id } = await existingUser(ctx, tx, userId);
  return { user, other: { no, id } };
}

/** A client acts for itself; a server for a user whom it names. */
async function blockerOf(
  ctx: Context,
  db: Tx | Context['db'],
  param: string,
  named: string | undefined,
): Promise<Person> {
  const { user } = ctx.caller;
  if (user) {
    if (named !== undefined)
      throw new ApiError('forbidden', { param, message: 'Only a server may name the user.' });
    return user;
  }
  if (named === undefined) throw invalid(param, 'A server must say whose blocks.');
  const { no, id } = await existingUser(ctx, db, named);
  return { no, id };
}

export async function list(ctx: Context, input: Input<'blocks.list'>): Promise<Output<'blocks.list'>> {
  const user = await blockerOf(ctx, ctx.db, 'userId', input.userId);
  return listPage(
    input,
    isTimedPlace,
    (after, most) => sql.listBlocks(ctx.db, ctx.env.no, user.no, after, most),
    ({ blockedAt, no }) => [blockedAt, no],
    ({ userId, blockedAt }) => ({ userId, blockedAt }),
  );
}
