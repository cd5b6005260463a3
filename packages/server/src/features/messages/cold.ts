import type { MessageOrTombstone } from '@parley/protocol';
import type { Context } from '../context.ts';
import { shown } from '../pages.ts';
import { thawMessages, warmRow } from '../storage/thaw.ts';
import * as reader from './reader.ts';
import type { ColdRow, MessageRow } from './reader.ts';

/**
 * Messages that left the store for the customer's database. Our rows say which there are, in which order, who sent them and which
 * were deleted; the database says the rest. So a page that spans both has no gap and no repeat, whatever moves meanwhile. A message
 * that the database has no more (its owner removed it) is left out.
 */

/** The rows with what the customer's database says of the cold ones. */
export async function held(ctx: Context, rows: readonly (MessageRow | ColdRow)[]): Promise<MessageRow[]> {
  const away = rows.filter((row): row is ColdRow => row.id === null);
  if (away.length === 0) return rows as MessageRow[];
  const found = await ctx.services.storage.cold.at(
    ctx.env,
    away[0]!.cid,
    away.map((row) => row.seq),
  );
  // One that came back between the two looks is in our store again.
  const missed = away.filter((row) => !found.has(row.seq));
  const back = await reader.messagesAt(
    ctx.db,
    missed.map(({ conv, seq }) => ({ env: ctx.env.no, conv, seq })),
  );
  return rows.flatMap((row) => {
    if (row.id !== null) return [row];
    const record = found.get(row.seq);
    if (record) return [warmRow(row, record)];
    return back.filter((m) => m.seq === row.seq && !m.hard);
  });
}

/** Pages that were empty because the customer's database has nothing of them any more. */
const mostEmpty = 20;

/** A history page; `read` gives the next rows from a seq on, one more than the page has. */
export async function page(
  ctx: Context,
  limit: number,
  start: number,
  read: (from: number) => Promise<(MessageRow | ColdRow)[]>,
): Promise<{ data: MessageOrTombstone[]; more: boolean }> {
  let from = start;
  for (let empty = 0; ; empty++) {
    const rows = await read(from);
    const more = rows.length > limit;
    const inside = rows.slice(0, limit);
    const page = await shown(await held(ctx, inside), limit, reader.viewMessage);
    if (page.data.length > 0 || !more || empty === mostEmpty)
      return { data: page.data, more: more || page.more };
    from = inside.at(-1)!.seq;
  }
}

/** The rows of one place, where it is cold. */
export async function placed(ctx: Context, conversationId: string, seq: number): Promise<ColdRow[]> {
  const row = await reader.coldAt(ctx.db, ctx.env.no, { conversationId, seq });
  return row ? [row] : [];
}

/** By id. What our store does not count among the cold ones is not found, whatever the customer's database says. */
export async function find(ctx: Context, id: string): Promise<MessageRow | undefined> {
  const record = await ctx.services.storage.cold.get(ctx.env, id);
  if (!record) return undefined;
  const [row] = await placed(ctx, record.conversationId, record.seq);
  // It may have come back between the two looks.
  return row ? warmRow(row, record) : reader.findMessage(ctx.db, ctx.env.no, id);
}

/** Puts a message of the conversation back into our store, so that another can refer to it. */
export async function fetchBack(ctx: Context, id: string, conversationId: string): Promise<boolean> {
  const record = await ctx.services.storage.cold.get(ctx.env, id);
  if (record?.conversationId !== conversationId) return false;
  const [row] = await placed(ctx, conversationId, record.seq);
  return row !== undefined && (await thawMessages(ctx.db, ctx.env.no, row.conv, [record])) > 0;
}
