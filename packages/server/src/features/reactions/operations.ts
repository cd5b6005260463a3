import { ApiError, limits } from '@parley/protocol';
import type { Input, Output, Reactions } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import { noteReading } from '../audit/content.ts';
import type { Context } from '../context.ts';
import { parseExtras } from '../extras.ts';
import { fetchBack } from '../messages/cold.ts';
import { findAnywhere, readableMessage } from '../messages/operations.ts';
import { isInteger, isString, isTime, listPage } from '../pages.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { ownOf, viewReactions } from '../sql/reaction-reader.ts';
import { userNumbers } from '../users/sql.ts';
import { listReactions } from './sql.ts';
import type { NewReaction, ReactionPlace } from './sql.ts';

/** Reactions to messages (reactions.md). */

interface Wanted {
  messageId: string;
  emoji: string;
  userId?: string;
  on: boolean;
  replace: boolean;
}

export const set = (
  ctx: Context,
  { replace = false, ...input }: Input<'reactions.set'>,
): Promise<Output<'reactions.set'>> => change(ctx, { ...input, replace, on: true });

export const remove = (ctx: Context, input: Input<'reactions.remove'>): Promise<Output<'reactions.remove'>> =>
  change(ctx, { ...input, replace: false, on: false });

async function change(ctx: Context, wanted: Wanted): Promise<{ messageId: string; reactions: Reactions }> {
  const { messageId: id, emoji, on, replace } = wanted;
  if (Buffer.byteLength(emoji) > limits.emojiBytes)
    throw invalid('emoji', `An emoji has at most ${limits.emojiBytes} bytes.`);
  const row = await findAnywhere(ctx, id);
  return commitReaction(ctx, row, { user: await reactor(ctx, wanted, row), emoji, on, replace });
}

/** Commits a user's reaction or vote, and tells the user's own sockets. */
export async function commitReaction(
  ctx: Context,
  row: MessageRow,
  wanted: Pick<NewReaction, 'user' | 'emoji' | 'on' | 'replace'>,
): Promise<{ messageId: string; reactions: Reactions }> {
  const { services, env } = ctx;
  const { id } = row;
  const commit = () =>
    services.reactions.set({
      env: env.no,
      conversationId: row.cid,
      conv: row.conv,
      message: row.seq,
      own: ctx.caller.user !== null,
      ...wanted,
    });
  let done = await commit();
  // A message in the customer's database comes back first, as for an edit.
  if (done.status === 'cold' && (await fetchBack(ctx, id, row.cid))) done = await commit();
  if (done.status === 'cold') throw notFound('Message');
  const { own, revision } = done.reactions;
  if (done.changed)
    services.sockets.toUsers(env.no, [wanted.user], {
      t: 'reaction.own',
      d: { cid: row.cid, id, revision, ...ownOf(own) },
    });
  const reactions = viewReactions({ ...done.reactions, own: ctx.caller.user ? own : null });
  return { messageId: id, reactions };
}

/** A user reacts for itself; a server for a user whom it names. */
async function reactor(ctx: Context, { userId }: Wanted, row: MessageRow): Promise<number> {
  const { user } = ctx.caller;
  if (user) {
    if (userId !== undefined)
      throw new ApiError('forbidden', { param: 'userId', message: 'Only a server may name the user.' });
    return user.no;
  }
  if (userId === undefined) throw invalid('userId', 'A server must say who reacts.');
  const no = (await userNumbers(ctx.db, ctx.env.no, [userId])).get(userId);
  if (no !== undefined) return no;
  await readableMessage(ctx, row);
  throw new ApiError('not_member');
}

export async function list(ctx: Context, input: Input<'reactions.list'>): Promise<Output<'reactions.list'>> {
  const row = await findAnywhere(ctx, input.messageId);
  await readableMessage(ctx, row);
  await noteReading(ctx, { no: row.conv, id: row.cid });
  if (row.deletedAt) throw notFound('Message');
  const place = { env: ctx.env.no, conv: row.conv, message: row.seq };
  // polls#anonymous: nobody is told who voted.
  const votes = parseExtras(row.extras).poll?.anonymous === false;
  return listPage(
    input,
    isPlace,
    (after, limit) => listReactions(ctx.db, place, { emoji: input.emoji ?? null, votes, after, limit }),
    ({ createdAt, user, emoji }) => [createdAt, user, emoji],
    ({ userId, emoji, createdAt }) => ({ userId, emoji, createdAt }),
  );
}

const isPlace = (value: unknown): value is ReactionPlace =>
  Array.isArray(value) && value.length === 3 && isTime(value[0]) && isInteger(value[1]) && isString(value[2]);
