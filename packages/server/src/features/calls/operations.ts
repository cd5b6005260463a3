import { ApiError, limits } from '@parley/protocol';
import type { Call, Input, RtpCapabilities } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import { tellOfCall } from '../../log/record.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import { record } from '../audit/operations.ts';
import { actingUser } from '../callers.ts';
import { Reply } from '../context.ts';
import type { Context, Operation } from '../context.ts';
import { blockersOf } from '../blocks/sql.ts';
import { lockForChange, readable, requireWriting, requireWritingIn } from '../conversations/access.ts';
import { requirePosting } from '../conversations/rules.ts';
import { membershipOf } from '../conversations/sql/members.ts';
import { listMembers } from '../conversations/sql.ts';
import { isInteger, listPage } from '../pages.ts';
import { findUser } from '../users/sql.ts';
import { ended, settled, withMove, withNewcomer } from './call-state.ts';
import { later, unheardMs } from './jobs.ts';
import { change, push } from './moves.ts';
import type { HereEnded } from './moves.ts';
import { callsUnavailable, chooseNode, findNode, place } from './sql/media-nodes.ts';
import { invited, isIn } from './participant-state.ts';
import type { Participant } from './participant-state.ts';
import * as sql from './sql.ts';
import type { CallRow, LockedCall } from './sql.ts';

/** calls#record. Each change is one transaction that locks the call. */

const missing = () => notFound('Call');
const notInCall = () => new ApiError('not_found', { message: 'The user is not in the call.' });

async function connectedUsers(ctx: Context, users: readonly number[]): Promise<Set<number>> {
  try {
    const refs = users.map((user) => ({ env: ctx.env.no, user }));
    const connected = await ctx.services.calls.connected(refs);
    return new Set(users.filter((_, i) => connected[i]));
  } catch {
    // One push too many is better than a call that nobody notices.
    return new Set();
  }
}

export async function start(ctx: Context, input: Input<'calls.start'>): Promise<Call | Reply<Call>> {
  const env = ctx.env.no;
  const caller = await callerOf(ctx, input.callerId);
  const conv = await readable(ctx, ctx.db, input.conversationId);
  // Asked before the transaction, which must not wait for Redis. A user who becomes a member meanwhile gets a push.
  const online = await connectedUsers(
    ctx,
    (await listMembers(ctx.db, env, conv.no)).map((m) => m.no),
  );
  await ctx.services.analytics.active.admit(ctx.env, caller.no);
  return ctx.db.tx(async (tx) => {
    const access = await lockForChange(ctx, tx, { no: conv.no });
    requireWriting(access);
    const held = access.conv;
    const members = await listMembers(tx, env, held.no);
    if (!members.some((m) => m.no === caller.no)) throw new ApiError('not_member');
    const live = await sql.liveCallOf(tx, env, held.no);
    if (live !== undefined) return new Reply(200, sql.viewCall((await sql.lockCall(tx, env, live))!.call));
    requirePosting(held, access);
    const node = await chooseNode(tx);
    if (!node) throw await callsUnavailable(tx);

    const at = held.lockedAt;
    const others = members.filter((m) => m.no !== caller.no);
    const numbers = others.map((m) => m.no);
    const busy = await sql.usersInCalls(tx, env, numbers);
    // A call does not ring at those who block the caller; they may join. A server's call rings everywhere.
    const blockers = ctx.caller.user ? await blockersOf(tx, env, caller.no, numbers) : new Set<number>();
    const stateOf = (user: number) => (blockers.has(user) ? 'missed' : busy.has(user) ? 'busy' : 'ringing');
    const participants = [
      invited({ usr: caller.no, userId: caller.id }, 'joining', at),
      ...others.map((m) => ({
        ...invited({ usr: m.no, userId: m.userId }, stateOf(m.no), at),
        pushed: stateOf(m.no) === 'ringing' && !online.has(m.no),
      })),
    ];
    const call = await sql.insertCall(tx, {
      ...settled({ ...newCall(ctx, input, held, at), createdBy: caller.no, participants }, at),
      createdById: caller.id,
      node: node.id,
    });
    await begin(ctx, tx, call);
    return sql.viewCall(call);
  });
}

async function callerOf(ctx: Context, callerId: string | undefined): Promise<{ no: number; id: string }> {
  const bad = (message: string) => new ApiError('invalid_request', { param: 'callerId', message });
  if (ctx.caller.user) {
    if (callerId !== undefined) throw bad('callerId is for servers only.');
    return ctx.caller.user;
  }
  if (callerId === undefined) throw bad('A server must say who calls: callerId.');
  const user = await findUser(ctx.db, ctx.env.no, callerId);
  if (!user) throw new ApiError('not_member');
  if (user.deactivated_at) throw new ApiError('user_deactivated');
  return { no: user.no, id: user.id };
}

const newCall = (
  ctx: Context,
  { kind, metadata }: Input<'calls.start'>,
  conv: { no: number; id: string; type: string },
  at: string,
) => ({
  env: ctx.env.no,
  id: ctx.services.ids.make('call'),
  conv: conv.no,
  cid: conv.id,
  direct: conv.type === 'direct',
  kind,
  status: 'ringing' as const,
  metadata: metadata === undefined ? null : JSON.stringify(metadata),
  createdAt: at,
  answeredAt: null,
  endedAt: null,
  endReason: null,
  epoch: 1,
});

/**
 * Lets the call ring: queues the webhook, pushes to users without a socket, and the job that ends the ringing; sends
 * frames to the others.
 */
async function begin(ctx: Context, tx: Tx, call: CallRow): Promise<void> {
  const { services } = ctx;
  const view = sql.viewCall(call);
  await tellOfCall(services.log, tx, call, 'call.started', view);
  tx.afterCommit(() => {
    services.calls.started(call.kind);
    if (call.endReason !== null) services.calls.ended(call.endReason);
  });
  if (call.status === 'ended') {
    await tellOfCall(services.log, tx, call, 'call.ended', view);
    tx.afterCommit(() => services.sockets.toConversation(call.cid, { t: 'call.ended', d: { call: view } }));
    return;
  }
  const ringing = call.participants.filter((p) => p.state === 'ringing');
  const users = ringing.filter((p) => p.pushed).map((p) => p.usr);
  await push(services, tx, call, users, 'incoming', services.clock.now());
  if (users.length < ringing.length) await later(tx, call, { kind: 'unheard' }, call.createdAt, unheardMs);
  await later(tx, call, { kind: 'ring' }, call.createdAt, limits.ringTimeoutMs);
  tx.afterCommit(() => {
    services.sockets.toUsers(
      call.env,
      ringing.map((p) => p.usr),
      { t: 'call.incoming', d: { call: view } },
      { confirm: call.id },
    );
    services.sockets.toUsers(call.env, [call.createdBy], { t: 'call.updated', d: { call: view } });
  });
}

export const list: Operation<Context, 'calls.list'> = async (ctx, input) => {
  const conv =
    input.conversationId === undefined ? null : (await readable(ctx, ctx.db, input.conversationId)).no;
  const user = input.userId === undefined ? null : await findUser(ctx.db, ctx.env.no, input.userId);
  if (user === undefined) return { data: [], hasMore: false, nextCursor: null };
  const filter = {
    env: ctx.env.no,
    conv,
    user: user?.no ?? null,
    live: input.live,
    member: conv === null ? (ctx.caller.user?.no ?? null) : null,
  };
  const page = await listPage(
    input,
    isInteger,
    (before, limit) => sql.listCalls(ctx.db, { ...filter, before: before ?? Number.MAX_SAFE_INTEGER, limit }),
    ({ no }) => no,
    sql.viewCall,
  );
  return { ...page, hasMore: page.nextCursor !== null };
};

export const get: Operation<Context, 'calls.get'> = async (ctx, input) => {
  const call = await sql.findCall(ctx.db, ctx.env.no, input.callId);
  if (!call) throw missing();
  if (ctx.caller.user) await readable(ctx, ctx.db, call.cid);
  return sql.viewCall(call);
};

/** A live call that the caller may see, locked until the transaction ends. */
async function lockLive(ctx: Context, tx: Tx, id: string): Promise<LockedCall> {
  const locked = await sql.lockCall(tx, ctx.env.no, id);
  if (!locked) throw missing();
  const { call } = locked;
  if (ctx.caller.user && !(await membershipOf(tx, call.env, call.conv, ctx.caller.user.no)))
    throw new ApiError('not_member');
  if (call.status === 'ended') throw new ApiError('call_ended');
  return locked;
}

export const join: Operation<Context, 'calls.join'> = async (ctx, input) => {
  const me = actingUser(ctx);
  return ctx.services.analytics.active.acting(ctx.db, ctx.env, me.no, async (tx) => {
    const { call, at } = await lockLive(ctx, tx, input.callId);
    await requireWritingIn(ctx, tx, await readable(ctx, tx, call.cid));
    const mine = call.participants.find((p) => p.usr === me.no);
    if (input.answer && mine && isIn(mine))
      throw new ApiError('call_ended', { message: 'The call was answered on another device.' });
    const most = ctx.services.plans[ctx.env.plan].callParticipants;
    if (!(mine && isIn(mine)) && call.participants.filter(isIn).length >= most)
      throw new ApiError('plan_limit_reached', {
        message: `The plan allows ${most} participants in a call.`,
      });
    const host = await hostOf(tx, call);
    const device = ctx.services.ids.secret(24);
    const joined = mine
      ? withMove(host.call, me.no, 'join', at)
      : withNewcomer(host.call, invited({ usr: me.no, userId: me.id }, 'joining', at), at);
    const session = input.sessionId ?? null;
    const after = withParticipant(joined, me.no, (p) => ({ ...p, device, session }));
    const done = await change(ctx, tx, call, after, elsewhere(mine, me.no, session));
    return {
      call: sql.viewCall(done),
      media: {
        transport: 'sfu' as const,
        iceServers: ctx.services.calls.iceServers(me.no, call.id),
        device,
        rtpCapabilities: host.rtpCapabilities,
      },
    };
  });
};

/** What the user's other devices are told when one joins: they stop ringing, or lose their place. */
function elsewhere(mine: Participant | undefined, user: number, session: string | null): HereEnded[] {
  if (mine?.state === 'ringing' && session !== null)
    return [{ user, endedHere: 'answered_elsewhere', except: session }];
  if (mine?.session && mine.session !== session) return [{ user, endedHere: 'moved', only: mine.session }];
  return [];
}

export const withParticipant = (
  call: CallRow,
  user: number,
  map: (one: Participant) => Participant,
): CallRow => ({ ...call, participants: call.participants.map((p) => (p.usr === user ? map(p) : p)) });

/** The node that hosts the call. A call whose node is gone moves to another, with a new epoch. */
export async function hostOf(
  tx: Tx,
  call: CallRow,
): Promise<{ call: CallRow; rtpCapabilities: RtpCapabilities }> {
  const current = await findNode(tx, call.node);
  if (current) return { call, rtpCapabilities: current.rtpCapabilities };
  const node = await chooseNode(tx);
  if (!node) throw await callsUnavailable(tx);
  return { call: await place(tx, call, node.id), rtpCapabilities: node.rtpCapabilities };
}

export async function decline(ctx: Context, input: Input<'calls.decline'>): Promise<{ call: Call }> {
  const me = actingUser(ctx);
  return changed(ctx, input.callId, ({ call, at }) => [
    withMove(call, me.no, 'decline', at),
    [{ user: me.no, endedHere: 'declined_elsewhere' }],
  ]);
}

export async function leave(ctx: Context, input: Input<'calls.leave'>): Promise<{ call: Call }> {
  const me = actingUser(ctx);
  return changed(ctx, input.callId, ({ call, at }) => [withMove(call, me.no, 'leave', at), []]);
}

export async function end(ctx: Context, input: Input<'calls.end'>): Promise<{ call: Call }> {
  return changed(
    ctx,
    input.callId,
    ({ call, at }) => [ended(call, 'ended_by_server', at), []],
    (tx, call) =>
      record(ctx, tx, {
        action: 'calls.end',
        target: call.id,
        before: { status: call.status },
        after: { status: 'ended' },
      }),
  );
}

export async function remove(ctx: Context, input: Input<'calls.remove'>): Promise<{ call: Call }> {
  return changed(
    ctx,
    input.callId,
    ({ call, at }) => {
      const one = participantOf(call, input.userId);
      return [withMove(call, one.usr, 'leave', at), [{ user: one.usr, endedHere: 'removed' }]];
    },
    (tx, call) =>
      record(ctx, tx, {
        action: 'calls.remove',
        user: participantOf(call, input.userId).usr,
        before: { call: call.id },
      }),
  );
}

const participantOf = (call: CallRow, userId: string): Participant => {
  const one = call.participants.find((p) => p.userId === userId);
  if (!one) throw notInCall();
  return one;
};

const notConnected = (): ApiError =>
  new ApiError('invalid_request', { message: 'The user is not connected to media.' });

export async function mute(ctx: Context, input: Input<'calls.mute'>): Promise<{ call: Call }> {
  const call = await ctx.db.tx(async (tx) => {
    const { call: held } = await lockLive(ctx, tx, input.callId);
    const { usr, state } = participantOf(held, input.userId);
    if (state !== 'joined') throw notConnected();
    const after = { call: held.id, source: input.source };
    await record(ctx, tx, { action: 'calls.mute', user: usr, after });
    return held;
  });
  const { usr } = participantOf(call, input.userId);
  const seat = { env: call.env, call: call.no, user: usr };
  if (call.node === null || !(await ctx.services.calls.media.mute(call.node, seat, input.source)))
    throw notConnected();
  return { call: sql.viewCall(call) };
}

async function changed(
  ctx: Context & { db: Db },
  callId: string,
  move: (locked: LockedCall) => [CallRow, HereEnded[]],
  alongside?: (tx: Tx, call: CallRow) => Promise<void>,
): Promise<{ call: Call }> {
  return ctx.db.tx(async (tx) => {
    const locked = await lockLive(ctx, tx, callId);
    const [after, here] = move(locked);
    await alongside?.(tx, locked.call);
    return { call: sql.viewCall(await change(ctx, tx, locked.call, after, here)) };
  });
}
