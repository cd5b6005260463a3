import type { Readable } from 'node:stream';
import type { Input, Output } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import { record } from '../audit/operations.ts';
import { Reply } from '../context.ts';
import type { Context, Operation } from '../context.ts';
import { isString, listPage } from '../pages.ts';
import { existingUser } from '../users/operations.ts';
import { userNumbers } from '../users/sql.ts';
import * as sql from './sql.ts';

/** The present nodes and sockets, and the sockets that users had. */

export const nodes = async (ctx: Context): Promise<Output<'live.nodes'>> => ({
  data: await sql.liveNodes(ctx.db, ctx.env.no),
});

export const sockets: Operation<Context, 'live.sockets'> = async (ctx, input) => {
  const { userId, node } = input;
  let user: number | undefined;
  if (userId !== undefined) {
    user = (await userNumbers(ctx.db, ctx.env.no, [userId])).get(userId);
    if (user === undefined) return { data: [], nextCursor: null };
  }
  return sessionPage(ctx, input, { live: true, user, node });
};

export const sessionsOf: Operation<Context, 'users.sessions'> = async (ctx, input) => {
  const user = await existingUser(ctx, ctx.db, input.userId);
  return sessionPage(ctx, input, { live: input.live ?? false, user: user.no });
};

function sessionPage(
  ctx: Context,
  input: { limit?: number; cursor?: string },
  asked: { live: boolean; user?: number; node?: string },
): Promise<Output<'live.sockets'>> {
  return listPage(
    input,
    isString,
    (before, limit) => sql.listSessions(ctx.db, { ...asked, env: ctx.env.no, before, limit }),
    (row) => row.id,
    (row) => row,
  );
}

export const endSession: Operation<Context, 'users.endSession'> = async (ctx, input) => {
  await ctx.db.tx(async (tx) => {
    const user = await existingUser(ctx, tx, input.userId);
    const found = await sql.openSession(tx, ctx.env.no, user.no, input.sessionId);
    if (!found) throw notFound('Open session');
    const before = { sessionId: input.sessionId };
    await record(ctx, tx, { action: 'users.endSession', user: user.no, before });
    tx.afterCommit(() => ctx.services.signals.sessionOut(found.node, input.sessionId));
  });
};

/** The most sockets that a user can have, plus a few that are just closing. */
const mostSockets = 20;

export async function trace(ctx: Context, input: Input<'live.trace'>): Promise<Reply<Readable>> {
  const user = await existingUser(ctx, ctx.db, input.userId);
  const open = await sql.listSessions(ctx.db, {
    env: ctx.env.no,
    user: user.no,
    live: true,
    before: null,
    limit: mostSockets,
  });
  const lines = await ctx.services.traces.open({
    env: ctx.env.no,
    user: user.no,
    seconds: input.seconds ?? 60,
    sessions: open.length,
  });
  await record(ctx, ctx.db, { action: 'live.trace', user: user.no }).catch((error: unknown) => {
    lines.destroy();
    throw error;
  });
  return new Reply(200, lines, {
    'Content-Type': 'application/jsonl; charset=utf-8',
    'X-Accel-Buffering': 'no',
  });
}
