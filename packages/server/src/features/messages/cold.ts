import type { MessageOrTombstone } from '@parley/protocol';
import type { Context } from '../context.ts';
import { shown } from '../pages.ts';
import { thawMessages, warmRow } from '../storage/thaw.ts';
import * as reader from '../sql/message-reader.ts';
import type { ColdRow, MessageRow } from '../sql/message-reader.ts';

/**
 * Messages that moved to the customer's database ("cold" ones). Our rows still say which messages exist, in which
 * order, who sent them and which were deleted; the customer's database has the rest. So a page that spans both has no
 * gap and no repeat, whatever moves meanwhile. A message that its owner removed from that database is left out.
 */

/** Returns the rows, the cold ones completed from the customer's database. */
export async function completed(
  ctx: Context,
  rows: readonly (MessageRow | ColdRow)[],
): Promise<MessageRow[]> {
  const away = rows.filter((row): row is ColdRow => row.id === null);
  if (away.length === 0) return rows as MessageRow[];
  const found = await ctx.services.storage.cold.at(
    ctx.env,
    away[0]!.cid,
    away.map((row) => row.seq),
  );
  // A message that was moved back between the two queries is in our store again.
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

/** How many pages in a row may be empty because the customer's database no longer has their messages. */
const mostEmpty = 20;

/**
 * A history page. `read` returns the rows from a seq on, one more than fits the page. Our own rows are read while it is
 * checked that the caller is `allowed` to read; the customer's database is asked, and anything returned, afterwards.
 */
export async function page(
  ctx: Context,
  allowed: Promise<unknown>,
  { start, limit }: { start: number; limit: number },
  read: (from: number) => Promise<(MessageRow | ColdRow)[]>,
): Promise<{ data: MessageOrTombstone[]; more: boolean }> {
  let from = start;
  for (let empty = 0; ; empty++) {
    const [rows] = await Promise.all([read(from), allowed]);
    const more = rows.length > limit;
    const inside = rows.slice(0, limit);
    const page = shown(await completed(ctx, inside), limit, reader.viewMessage);
    if (page.data.length > 0 || !more || empty === mostEmpty)
      return { data: page.data, more: more || page.more };
    from = inside.at(-1)!.seq;
  }
}

/** The row at this place if it is cold, otherwise none. */
export async function placed(ctx: Context, conversationId: string, seq: number): Promise<ColdRow[]> {
  const row = await reader.coldAt(ctx.db, ctx.env.no, { conversationId, seq });
  return row ? [row] : [];
}

/**
 * Finds a cold message by id. A message that our store does not list as cold is not found, whatever the customer's
 * database says.
 */
export async function find(ctx: Context, id: string): Promise<MessageRow | undefined> {
  const record = await ctx.services.storage.cold.get(ctx.env, id);
  if (!record) return undefined;
  const [row] = await placed(ctx, record.conversationId, record.seq);
  // It may have been moved back between the two queries.
  return row ? warmRow(row, record) : reader.findMessage(ctx.db, ctx.env.no, id);
}

/** Puts a message of the conversation back into our store, so that another can refer to it. */
export async function fetchBack(ctx: Context, id: string, conversationId: string): Promise<boolean> {
  const record = await ctx.services.storage.cold.get(ctx.env, id);
  if (record?.conversationId !== conversationId) return false;
  const [row] = await placed(ctx, conversationId, record.seq);
  return row !== undefined && (await thawMessages(ctx.db, ctx.env.no, row.conv, [record])) > 0;
}
