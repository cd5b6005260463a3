import type { Input, Output } from '@parley/protocol';
import type { Context } from '../context.ts';
import { isInteger, isShortInteger, listPage, pageLimit } from '../pages.ts';
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
  const { query, type = null } = input;
  if (query !== undefined)
    return {
      data: await described(db, env, await found(ctx, query, pageLimit(input.limit))),
      nextCursor: null,
    };
  const user = input.userId === undefined ? null : (await existingUser(ctx, db, input.userId)).no;
  const { data, nextCursor } = await listPage(
    input,
    isPlace,
    (after, limit) =>
      user === null
        ? newest(db, env, { type, after, limit })
        : newestOf(db, env, { user, type, after, limit }),
    ({ step, no }) => [step, no] satisfies Place,
    ({ no }) => no,
  );
  return { data: await described(db, env, data), nextCursor };
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
