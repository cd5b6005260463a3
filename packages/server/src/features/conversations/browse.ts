import type { Input, Output } from '@parley/protocol';
import type { Context } from '../context.ts';
import { cut, decodeCursor, encodeCursor, isInteger, isShortInteger, pageLimit } from '../pages.ts';
import { existingUser } from '../users/operations.ts';
import { findUser, listUsersByName } from '../users/sql.ts';
import { described, matching, newest, newestOf } from './sql/browse.ts';
import type { Place } from './sql/browse.ts';

/** How many people whose name begins with the text are looked into. */
const mostPeople = 20;

const isPlace = (value: unknown): value is Place =>
  Array.isArray(value) && value.length === 2 && isShortInteger(value[0]) && isInteger(value[1]);

/** dashboard#explorer: all conversations of the environment. */
export async function browse(
  ctx: Context,
  input: Input<'explorer.conversations'>,
): Promise<Output<'explorer.conversations'>> {
  const { db } = ctx;
  const env = ctx.env.no;
  const limit = pageLimit(input.limit);
  if (input.query !== undefined)
    return {
      data: await described(db, env, await found(ctx, input.query, limit)),
      nextCursor: null,
    };
  const after = input.cursor === undefined ? null : decodeCursor(input.cursor, isPlace);
  const asked = { type: input.type ?? null, after, limit: limit + 1 };
  const rows =
    input.userId === undefined
      ? await newest(db, env, asked)
      : await newestOf(db, env, { ...asked, user: (await existingUser(ctx, db, input.userId)).no });
  const { page, more } = cut(rows, limit);
  const last = page.at(-1);
  return {
    data: await described(
      db,
      env,
      page.map(({ no }) => no),
    ),
    nextCursor: more && last ? encodeCursor([last.step, last.no] satisfies Place) : null,
  };
}

async function found(ctx: Context, text: string, limit: number): Promise<number[]> {
  const env = ctx.env.no;
  const [user, named] = await Promise.all([
    findUser(ctx.db, env, text),
    listUsersByName(ctx.db, env, { namePrefix: text, prefix: '', after: null, limit: mostPeople }),
  ]);
  const members = [...(user ? [user.no] : []), ...named.map(({ no }) => no)];
  return matching(ctx.db, env, { text, members, limit });
}
