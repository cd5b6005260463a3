import { ApiError } from '@parley/protocol';
import type { Input, Output } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Context, EnvironmentContext } from '../context.ts';
import { leaveCalls } from '../calls/moves.ts';
import { decodeCursor, isString, keyPage, pageLimit } from '../pages.ts';
import { sharesConversation } from './sharing.ts';
import * as sql from './sql.ts';

/** How an erased id is remembered: by keyed hash, never by name. */
export const subjectOf = (vault: Vault, env: number, id: string): Buffer => vault.mac(`user ${env} ${id}`);

const unknownUser = () => new ApiError('not_found', { message: 'There is no such user.' });

export async function upsert(ctx: Context, input: Input<'users.upsert'>): Promise<Output<'users.upsert'>> {
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
  if (!row) throw unknownUser();
  return sql.viewUser(row);
}

export async function get(ctx: Context, input: Input<'users.get'>): Promise<Output<'users.get'>> {
  const row = await sql.findUser(ctx.db, ctx.env.no, input.userId);
  if (ctx.caller.kind === 'client') {
    const me = ctx.caller.user;
    // Known or not, a stranger is forbidden: no oracle (DECISIONS, Tenancy).
    if (!row || (row.no !== me.no && !(await sharesConversation(ctx.db, ctx.env.no, me.no, row.no))))
      throw new ApiError('forbidden');
  }
  if (!row) throw unknownUser();
  return sql.viewUser(row);
}

export async function list(ctx: Context, input: Input<'users.list'>): Promise<Output<'users.list'>> {
  const limit = pageLimit(input.limit);
  const after = input.cursor === undefined ? '' : decodeCursor(input.cursor, isString);
  const rows = await sql.listUsers(ctx.db, ctx.env.no, after, limit + 1);
  return keyPage(rows, limit, (row) => row.id, sql.viewUser);
}

export async function deactivate(ctx: Context, input: Input<'users.deactivate'>) {
  return ctx.db.tx(async (tx) => {
    const row = await sql.setDeactivated(tx, ctx.env.no, input.userId, true);
    if (!row) throw unknownUser();
    await leaveCalls(ctx, tx, ctx.env.no, row.no);
    tx.afterCommit(() => ctx.services.signals.userOut(ctx.env.no, row.no, 4003));
    return sql.viewUser(row);
  });
}

export async function reactivate(ctx: Context, input: Input<'users.reactivate'>) {
  const row = await sql.setDeactivated(ctx.db, ctx.env.no, input.userId, false);
  if (!row) throw unknownUser();
  return sql.viewUser(row);
}

export async function revokeTokens(ctx: Context, input: Input<'users.revokeTokens'>) {
  return ctx.db.tx(async (tx) => {
    const row = await sql.revokeTokens(tx, ctx.env.no, input.userId);
    if (!row) throw unknownUser();
    tx.afterCommit(() => ctx.services.signals.userOut(ctx.env.no, row.no, 4001));
    return sql.viewUser(row);
  });
}

/** Numbers of the named users: a server's unknown ones are created, a client's are `404 not_found`. */
export async function resolveUsers(
  ctx: EnvironmentContext,
  db: Queryable,
  ids: string[],
): Promise<Map<string, number>> {
  const env = ctx.env.no;
  let found = await sql.userNumbers(db, env, ids);
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  if (ctx.caller.kind === 'client') throw unknownUser();
  await sql.createMissingUsers(db, env, missing, (id) => subjectOf(ctx.services.vault, env, id));
  found = await sql.userNumbers(db, env, ids);
  const erased = ids.find((id) => !found.has(id));
  if (erased) throw unknownUser();
  return found;
}
