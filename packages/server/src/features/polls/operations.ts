import { ApiError, voteKeys } from '@parley/protocol';
import type { Input, Message, Output } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { record } from '../../log/record.ts';
import type { Context } from '../context.ts';
import { moderates, requireWriting } from '../conversations/access.ts';
import { parseExtras, storeExtras } from '../extras.ts';
import { happened } from '../happenings.ts';
import { findAnywhere, readableMessage, withExtras, withMessage } from '../messages/operations.ts';
import { setExtras } from '../messages/sql.ts';
import { commitReaction } from '../reactions/operations.ts';
import { notePollClosed, pollClosed } from '../reactions/sql.ts';
import { viewLive } from '../sql/message-reader.ts';
import type { MessageRow } from '../sql/message-reader.ts';

/** Polls (polls.md). A poll is part of its message; votes are reactions under keys of their own. */

const missing = () => new ApiError('not_found', { message: 'This message has no poll.' });

/** Replaces the caller's vote. What a poll asks never changes, so that is checked first; whether it is open, in the commit. */
export async function vote(
  ctx: Context,
  { messageId, options }: Input<'polls.vote'>,
): Promise<Output<'polls.vote'>> {
  const row = await findAnywhere(ctx, messageId);
  const wrong = problemOf(row, options);
  if (wrong) {
    await readableMessage(ctx, row);
    throw wrong;
  }
  const wanted = options.toSorted((a, b) => a - b);
  return commitReaction(ctx, row, {
    user: ctx.caller.user!.no,
    emoji: `${voteKeys}${wanted.join(',')}`,
    on: wanted.length > 0,
    replace: true,
  });
}

function problemOf(row: MessageRow, options: readonly number[]): ApiError | null {
  const { poll } = parseExtras(row.extras);
  if (!poll || row.deletedAt) return missing();
  const refuse = (message: string) => invalid('options', message);
  if (options.length > 1 && !poll.multiple) return refuse('This poll takes one choice.');
  return options.some((id) => id > poll.options.length) ? refuse('This poll has no such option.') : null;
}

/** No vote is counted afterwards; the message keeps its version. */
export async function close(ctx: Context, { messageId }: Input<'polls.close'>): Promise<Message> {
  const env = ctx.env.no;
  const { message, conv } = await withMessage(ctx, messageId, async (tx, { access, row }) => {
    requireWriting(access);
    const { poll, ...rest } = parseExtras(row.extras);
    if (!poll || row.deletedAt) throw missing();
    if (row.sender !== access.actor?.no && !moderates(access))
      throw new ApiError('forbidden', {
        message: 'Only the author, a moderator or the owner may close a poll.',
      });
    const { lockedAt } = access.conv;
    if (poll.closedAt !== undefined || (poll.closesAt !== undefined && poll.closesAt <= lockedAt))
      throw pollClosed();
    await happened(ctx, tx, 'messageChanges', { env, row });
    const extras = storeExtras({ ...rest, poll: { ...poll, closedAt: lockedAt } });
    await notePollClosed(tx, env, row.conv, row.seq);
    await setExtras(tx, env, row, extras);
    tx.afterCommit(() => ctx.services.reactions.changed());
    const message = viewLive({ ...row, extras });
    await record(ctx.services.log, tx, access.conv, [
      { type: 'message.enriched', actor: access.actor, message },
    ]);
    return { message, conv: access.conv };
  });
  const [shown] = await withExtras(ctx, conv, [message]);
  return shown as Message;
}
