import type { Context } from '../context.ts';
import { record } from './operations.ts';
import { noteContentRead } from './sql.ts';

/**
 * dashboard#content-read: when a person reads message texts in the dashboard, the audit log gets an entry before
 * anything is shown, one per person, conversation and hour.
 */

const hourMs = 3_600_000;

interface Conversation {
  no: number;
  id: string;
}

export const noteReading = (ctx: Context, conversation: Conversation): Promise<void> =>
  noteReadings(ctx, 'messages.list', [conversation]);

/** The same for what was said in several conversations. */
export async function noteReadings(
  ctx: Context,
  action: 'messages.list' | 'reports.list',
  conversations: readonly Conversation[],
): Promise<void> {
  const { env } = ctx;
  const { person } = ctx.caller;
  if (!person || conversations.length === 0) return;
  const hour = new Date(Math.floor(ctx.services.clock.now() / hourMs) * hourMs);
  // In one order, so that two such transactions cannot deadlock.
  const each = [...new Map(conversations.map((c) => [c.no, c])).values()].sort((a, b) => a.no - b.no);
  await ctx.db.tx(async (tx) => {
    for (const { no, id } of each) {
      if (!(await noteContentRead(tx, env.no, no, person.account.no, hour))) continue;
      await record(ctx, tx, { action, target: id });
    }
  });
}

/**
 * dashboard#audit: who sends from the dashboard is recorded once the message is appended: a refused one leaves no entry.
 * Appends are collected into batches with a transaction of their own, so the entry follows in another; a repeat of a send
 * whose entry was lost in between writes it. What the message says is not recorded.
 */
export async function noteSending(
  ctx: Context,
  { conversationId }: { conversationId: string },
  sender: { no: number } | null,
): Promise<void> {
  if (!ctx.caller.person) return;
  await record(ctx, ctx.db, {
    action: 'messages.send',
    ...(sender ? { user: sender.no } : { target: conversationId }),
    after: { conversationId, as: sender ? 'the user' : 'the system' },
  });
}
