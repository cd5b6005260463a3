import type { Clock } from '../../platform/clock.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { record } from './operations.ts';
import { noteContentRead, removeContentReads } from './sql.ts';

/**
 * dashboard#content-read: when a person reads message texts in the dashboard, the audit log gets an entry before
 * anything is shown, one per person, conversation and hour.
 */

const hourMs = 3_600_000;

export async function noteReading(ctx: Context, conversation: { no: number; id: string }): Promise<void> {
  const { env } = ctx;
  const { person } = ctx.caller;
  if (!person) return;
  const hour = new Date(Math.floor(ctx.services.clock.now() / hourMs) * hourMs);
  await ctx.db.tx(async (tx) => {
    if (!(await noteContentRead(tx, env.no, conversation.no, person.account.no, hour))) return;
    await record(ctx, tx, {
      where: { env: env.no },
      action: 'messages.list',
      target: conversation.id,
      before: null,
      after: null,
    });
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
    where: { env: ctx.env.no },
    action: 'messages.send',
    ...(sender ? { user: sender.no } : { target: conversationId }),
    before: null,
    after: { conversationId, as: sender ? 'the user' : 'the system' },
  });
}

/** Deletes rows that only keep entries from being written twice in an hour; the entries themselves stay in the audit log. */
export async function removeOldReadings(db: Queryable, clock: Clock): Promise<void> {
  await removeContentReads(db, new Date(clock.now() - 2 * hourMs));
}
