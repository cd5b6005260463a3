import type { Input, Output } from '@parley/protocol';
import { actingUser } from '../callers.ts';
import type { Context } from '../context.ts';

/** Moves the caller's read mark forward. A lower seq changes nothing; one beyond the last event counts as the last event. */
export async function read(
  ctx: Context,
  input: Input<'conversations.read'>,
): Promise<Output<'conversations.read'>> {
  const user = actingUser(ctx);
  const { log, analytics } = ctx.services;
  await analytics.active.admit(ctx.env, user.no);
  const marked = await log.markRead({
    env: ctx.env.no,
    conversationId: input.conversationId,
    user: user.no,
    seq: input.seq,
  });
  await analytics.active.acted(ctx.env, user.no);
  if (marked.changed)
    ctx.services.signals.receipt({
      env: ctx.env.no,
      cid: input.conversationId,
      user: user.no,
      userId: user.id,
      lastReadSeq: marked.lastReadSeq,
    });
  return {
    conversationId: input.conversationId,
    lastReadSeq: marked.lastReadSeq,
    unreadCount: marked.unreadCount,
    mentionUnreadCount: marked.mentionUnreadCount,
  };
}
