import { limits } from '@parley/protocol';
import type { Input, Message, Output } from '@parley/protocol';
import { limitReached, notFound } from '../../platform/api-errors.ts';
import { record } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import type { Context } from '../context.ts';
import { readable, requireWriting } from '../conversations/access.ts';
import type { LockedAccess } from '../conversations/access.ts';
import { requireAllowed } from '../conversations/rules.ts';
import { addFlag } from '../conversations/sql.ts';
import { completed } from '../messages/cold.ts';
import { withExtras, withMessage } from '../messages/operations.ts';
import type { LockedMessage } from '../messages/operations.ts';
import { flags, hasPins } from '../sql/flags.ts';
import { messagesOf, viewLive } from '../sql/message-reader.ts';
import { pinsBetween } from '../sql/pin-reader.ts';
import { addPin, dropPins } from './sql.ts';

/** Pinned messages (pins.md). */

export const set = (ctx: Context, { messageId }: Input<'pins.set'>): Promise<Output<'pins.set'>> =>
  withMessage(ctx, messageId, async (tx, locked) => {
    requirePinning(locked.access);
    const { conv, actor } = locked.access;
    const { seq } = live(locked);
    const [known] = hasPins(conv) ? await pinsBetween(tx, conv.env, conv.no, seq, seq) : [];
    if (known) return { messageId, pinnedAt: known.pinnedAt, pinnedBy: known.pinnedBy };
    const place = { env: conv.env, conv: conv.no, message: seq };
    const pin = { by: actor?.no ?? null, at: conv.lockedAt };
    if (!(await addPin(tx, place, pin, limits.pinsPerConversation)))
      throw limitReached(
        'pins',
        `A conversation has at most ${limits.pinsPerConversation} pinned messages.`,
        limits.pinsPerConversation,
      );
    if (!hasPins(conv)) await addFlag(tx, conv.env, conv.no, flags.pins);
    await tell(ctx, tx, locked, true);
    return { messageId, pinnedAt: pin.at, pinnedBy: actor?.id ?? null };
  });

export const remove = (ctx: Context, { messageId }: Input<'pins.remove'>): Promise<void> =>
  withMessage(ctx, messageId, async (tx, locked) => {
    requirePinning(locked.access);
    const { conv } = locked.access;
    const { seq } = live(locked);
    if (hasPins(conv) && (await dropPins(tx, conv.env, conv.no, [seq])) > 0)
      await tell(ctx, tx, locked, false);
  });

function requirePinning(access: LockedAccess): void {
  requireWriting(access);
  requireAllowed(access.conv, 'pinning', access, {
    message: 'Only the owner or a moderator may pin messages.',
  });
}

/** A deleted message can be neither pinned nor unpinned. */
function live({ row }: LockedMessage): LockedMessage['row'] {
  if (row.deletedAt) throw notFound('Message');
  return row;
}

async function tell(ctx: Context, tx: Tx, { access, row }: LockedMessage, pinned: boolean): Promise<void> {
  const { conv, actor } = access;
  await record(ctx.services.log, tx, conv, [
    { type: 'message.pinned', actor, message: row, data: { pinned, at: conv.lockedAt } },
  ]);
}

export async function list(ctx: Context, input: Input<'pins.list'>): Promise<Output<'pins.list'>> {
  const { db, env } = ctx;
  const conv = await readable(ctx, db, input.conversationId);
  const pins = hasPins(conv) ? await pinsBetween(db, env.no, conv.no, 0, Number.MAX_SAFE_INTEGER) : [];
  if (pins.length === 0) return { data: [] };
  const rows = await completed(
    ctx,
    await messagesOf(
      db,
      env.no,
      conv.no,
      pins.map(({ seq }) => seq),
    ),
  );
  const messages = await withExtras(ctx, conv, rows.filter((row) => !row.deletedAt).map(viewLive));
  // A message that was unpinned or deleted between these queries is left out.
  const bySeq = new Map(messages.map((m) => [m.seq, m as Message]));
  return { data: pins.flatMap(({ seq }) => bySeq.get(seq) ?? []).filter((m) => m.pinnedAt !== undefined) };
}
