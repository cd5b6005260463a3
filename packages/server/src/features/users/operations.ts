import { ApiError } from '@parley/protocol';
import type { Input, Output } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { record } from '../audit/operations.ts';
import type { Context, EnvironmentContext } from '../context.ts';
import { happened } from '../happenings.ts';
import { isString, listPage } from '../pages.ts';
import { moment } from '../time.ts';
// Declares `services.sharing`.
import type {} from './sharing.ts';
import * as sql from './sql.ts';

/** Erased ids are stored as a keyed hash, never in clear. */
export const subjectOf = (vault: Vault, env: number, id: string): Buffer => vault.mac(`user ${env} ${id}`);

/**
 * How many of a user's newest conversations are told of a new name. People who share only an older one see it when
 * they next load the user.
 */
const toldConversations = 100;

export async function upsert(ctx: Context, input: Input<'users.upsert'>): Promise<Output<'users.upsert'>> {
  const before = await sql.findUser(ctx.db, ctx.env.no, input.userId);
  const row = await sql.upsertUser(
    ctx.db,
    ctx.env.no,
    input.userId,
    subjectOf(ctx.services.vault, ctx.env.no, input.userId),
    {
      ...('name' in input ? { name: input.name ?? null } : {}),
      ...('imageUrl' in input ? { imageUrl: input.imageUrl ?? null } : {}),
      ...(input.metadata !== undefined ? { metadata: JSON.stringify(input.metadata) } : {}),
    },
  );
  if (!row) throw notFound('User');
  if (ctx.caller.person)
    await record(ctx, ctx.db, {
      action: 'users.upsert',
      user: row.no,
      after: { created: before === undefined, fields: Object.keys(input).filter((key) => key !== 'userId') },
    });
  const user = sql.viewUser(row);
  if (before && JSON.stringify(sql.viewUser(before)) !== JSON.stringify(user))
    for (const { cid } of await sql.newestConversations(ctx.db, ctx.env.no, row.no, toldConversations))
      ctx.services.sockets.toConversation(cid, { t: 'user.updated', d: { user } });
  return user;
}

/** Like `get`, for several users: those that the caller may not read are left out. */
export async function lookup(ctx: Context, input: Input<'users.lookup'>): Promise<Output<'users.lookup'>> {
  const rows = await sql.findUsers(ctx.db, ctx.env.no, [...new Set(input.userIds)]);
  if (!ctx.caller.user) return { data: rows.map(sql.viewUser) };
  const me = ctx.caller.user.no;
  const others = rows.map((row) => row.no).filter((no) => no !== me);
  const shared = await ctx.services.sharing(ctx.env.no, me, others);
  return { data: rows.filter((row) => row.no === me || shared.has(row.no)).map(sql.viewUser) };
}

export const get = async (ctx: Context, input: Input<'users.get'>): Promise<Output<'users.get'>> =>
  sql.viewUser(await visibleUser(ctx, input.userId));

/**
 * A client gets the same answer for an unknown user and for a stranger, so it cannot find out which ids exist
 * (users#visibility).
 */
export async function visibleUser(ctx: Context, id: string): Promise<sql.UserRow> {
  const row = await sql.findUser(ctx.db, ctx.env.no, id);
  const me = ctx.caller.user;
  const isVisible =
    !me || (row && (row.no === me.no || (await ctx.services.sharing(ctx.env.no, me.no, [row.no])).size > 0));
  if (!isVisible) throw new ApiError('forbidden');
  if (!row) throw notFound('User');
  return row;
}

export async function existingUser(ctx: EnvironmentContext, db: Queryable, id: string): Promise<sql.UserRow> {
  const row = await sql.findUser(db, ctx.env.no, id);
  if (!row) throw notFound('User');
  return row;
}

export async function list(ctx: Context, input: Input<'users.list'>): Promise<Output<'users.list'>> {
  const { namePrefix, prefix = '' } = input;
  if (namePrefix !== undefined)
    return listPage(
      input,
      isNamePlace,
      (after, limit) => sql.listUsersByName(ctx.db, ctx.env.no, { namePrefix, prefix, after, limit }),
      (row) => [row.folded, row.id],
      sql.viewUser,
    );
  return listPage(
    input,
    isString,
    (after, most) => sql.listUsers(ctx.db, ctx.env.no, after ?? '', most, prefix),
    (row) => row.id,
    sql.viewUser,
  );
}

const isNamePlace = (value: unknown): value is sql.NamePlace =>
  Array.isArray(value) &&
  value.length === 2 &&
  typeof value[0] === 'string' &&
  !value[0].includes('\0') &&
  isString(value[1]);

export const deactivate = async (ctx: Context, { userId, until }: Input<'users.deactivate'>) =>
  setDeactivated(ctx, userId, true, until === undefined ? null : moment('until', until));

export const reactivate = (ctx: Context, { userId }: Input<'users.reactivate'>) =>
  setDeactivated(ctx, userId, false, null);

const setDeactivated = (ctx: Context, userId: string, deactivated: boolean, until: string | null) =>
  ctx.db.tx(async (tx) => {
    const was = (await sql.findUser(tx, ctx.env.no, userId))?.deactivated_at ?? null;
    const row = await sql.setDeactivated(tx, ctx.env.no, userId, deactivated, until);
    if (!row) throw notFound('User');
    if (deactivated === (was === null))
      await record(ctx, tx, {
        action: deactivated ? 'users.deactivate' : 'users.reactivate',
        user: row.no,
        before: { deactivatedAt: was },
        after: { deactivatedAt: row.deactivated_at },
      });
    if (deactivated) await cutOff(ctx, tx, row.no, 4003);
    return sql.viewUser(row);
  });

export const revokeTokens = (ctx: Context, { userId }: Input<'users.revokeTokens'>) =>
  ctx.db.tx(async (tx) => {
    const row = await sql.revokeTokens(tx, ctx.env.no, userId);
    if (!row) throw notFound('User');
    await record(ctx, tx, {
      action: 'users.revokeTokens',
      user: row.no,
      after: { tokensFrom: row.tokens_from },
    });
    await cutOff(ctx, tx, row.no, 4001);
    return sql.viewUser(row);
  });

async function cutOff(ctx: Context, tx: Tx, user: number, code: 4001 | 4003): Promise<void> {
  await happened(ctx, tx, 'userCutOff', { env: ctx.env.no, user });
  tx.afterCommit(() => ctx.services.signals.userOut(ctx.env.no, user, code));
}

/** Returns the numbers of the named users. Unknown ones are created for a server; a client gets `404 not_found`. */
export async function resolveUsers(
  ctx: EnvironmentContext,
  db: Queryable,
  ids: string[],
): Promise<Map<string, number>> {
  const env = ctx.env.no;
  let found = await sql.userNumbers(db, env, ids);
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  if (ctx.caller.user) throw notFound('User');
  await sql.createMissingUsers(db, env, missing, (id) => subjectOf(ctx.services.vault, env, id));
  found = await sql.userNumbers(db, env, ids);
  const erased = ids.find((id) => !found.has(id));
  if (erased) throw notFound('User');
  return found;
}
