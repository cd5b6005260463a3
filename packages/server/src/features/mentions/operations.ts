import type { Input, Message, Output } from '@parley/protocol';
import { actingUser } from '../callers.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import { completed } from '../messages/cold.ts';
import { withExtras } from '../messages/operations.ts';
import { decodeCursor, encodeCursor, fitting, isInteger, isTime, pageLimit } from '../pages.ts';
import { liveAt, viewLive } from '../sql/message-reader.ts';
import { listMentions, listMentionsIn } from './sql.ts';
import type { MentionPlace, NamedRow } from './sql.ts';

/** How many rows a page looks at: those of conversations that the user left are passed over. */
const looked = 1_000;

/** Messages that name the caller, newest first (mentions#list). */
export async function list(ctx: Context, input: Input<'mentions.list'>): Promise<Output<'mentions.list'>> {
  const user = actingUser(ctx);
  const limit = pageLimit(input.limit);
  const env = ctx.env.no;
  const after = input.cursor === undefined ? null : decodeCursor(input.cursor, isPlace);
  const rows =
    input.conversationId === undefined
      ? await listMentions(ctx.db, env, user.no, after, looked)
      : await listMentionsIn(
          ctx.db,
          env,
          user.no,
          (await readable(ctx, ctx.db, input.conversationId)).no,
          after,
          limit + 1,
        );
  const mine = rows.filter((r) => r.seen);
  const page = mine.slice(0, limit);
  const found = await messagesOf(ctx, page);
  const fit = fitting(found);
  const end =
    fit < page.length || mine.length > limit
      ? page[fit - 1]
      : rows.length >= looked
        ? rows.at(-1)
        : undefined;
  return {
    data: found.slice(0, fit).flatMap((message) => message ?? []),
    nextCursor: end ? encodeCursor([end.at, end.conv, end.seq] satisfies MentionPlace) : null,
  };
}

/** The messages of the rows, each at its place; null for one that the customer's database no longer has, or that was deleted. */
async function messagesOf(ctx: Context, rows: readonly NamedRow[]): Promise<(Message | null)[]> {
  const places = await liveAt(ctx.db, ctx.env.no, rows);
  const flags = new Map(rows.map((r) => [r.conv, r.flags]));
  const shown = new Map<string, Message>();
  for (const [conv, some] of Map.groupBy(places, (row) => row.conv)) {
    const messages = (await completed(ctx, some)).map(viewLive);
    const all = await withExtras(ctx, { no: conv, flags: flags.get(conv)! }, messages);
    for (const message of all) shown.set(`${conv} ${message.seq}`, message as Message);
  }
  return rows.map(({ conv, seq }) => shown.get(`${conv} ${seq}`) ?? null);
}

const isPlace = (value: unknown): value is MentionPlace =>
  Array.isArray(value) &&
  value.length === 3 &&
  isTime(value[0]) &&
  isInteger(value[1]) &&
  isInteger(value[2]);
