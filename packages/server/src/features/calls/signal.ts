import { ApiError, testCallId } from '@parley/protocol';
import type { AckData } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import { actingUser } from '../callers.ts';
import type { Context } from '../context.ts';
import type { FrameRequest, MediaFrame } from '../media-request.ts';
import { hostOf, withParticipant } from './operations.ts';
import { callsUnavailable, chooseNode } from './sql/media-nodes.ts';
import { isIn } from './participant-state.ts';
import * as sql from './sql.ts';

/** Media frames of a socket: the first opens the media of a call, the others are passed on to the node that hosts it. */

/** The place of a call's media, as this socket opened it. */
export interface OpenCall {
  node: string;
  call: number;
}

/** How many calls one socket may have open. */
const mostOpen = 4;

/** A media frame of a socket. */
export type CallFrame = MediaFrame | { t: 'call.test'; d: object };

/** @param session the socket's session, with its open calls in `open`. */
export async function signal(
  ctx: Context,
  session: { id: string; open: Map<string, OpenCall> },
  frame: CallFrame,
): Promise<AckData<CallFrame['t']>> {
  const user = actingUser(ctx);
  if (frame.t === 'call.test') return test(ctx, user.no, session.open);
  const { callId } = frame.d;
  if (frame.t === 'call.open' && callId !== testCallId)
    remember(session.open, callId, await bind(ctx, user.no, session.id, callId, frame.d.device));
  const to = session.open.get(callId);
  if (!to) throw new ApiError('not_found', { message: 'This socket has not opened the call.' });
  const answer = await ctx.services.calls.ask(to.node, {
    method: frame.t,
    env: ctx.env.no,
    call: to.call,
    user: user.no,
    d: { ...frame.d, session: session.id, userId: user.id },
    // The compiler does not see that the frame's type and data still belong together.
  } as FrameRequest);
  return answer as AckData<MediaFrame['t']>;
}

function remember(open: Map<string, OpenCall>, callId: string, to: OpenCall): void {
  if (open.size >= mostOpen && !open.has(callId)) open.delete(open.keys().next().value!);
  open.set(callId, to);
}

/** Opens a test call, which has no row and a number that no call has. */
async function test(ctx: Context, user: number, open: Map<string, OpenCall>): Promise<AckData<'call.test'>> {
  const node = await chooseNode(ctx.db);
  if (!node) throw await callsUnavailable(ctx.db);
  remember(open, testCallId, { node: node.id, call: -user });
  const { calls, ids } = ctx.services;
  return {
    callId: testCallId,
    media: {
      transport: 'sfu',
      iceServers: calls.iceServers(user, testCallId),
      device: ids.secret(24),
      rtpCapabilities: node.rtpCapabilities,
    },
  };
}

/** Only the device that joined last may open media, on this socket. */
async function bind(
  ctx: Context,
  user: number,
  session: string,
  callId: string,
  device: string,
): Promise<OpenCall> {
  return ctx.db.tx(async (tx) => {
    const locked = await sql.lockCall(tx, ctx.env.no, callId);
    const mine = locked?.call.participants.find((p) => p.usr === user);
    if (!locked || !mine) throw notFound('Call');
    if (locked.call.status === 'ended') throw new ApiError('call_ended');
    if (!isIn(mine) || mine.device !== device)
      throw new ApiError('forbidden', {
        message: 'Join the call first; another device may have joined since.',
      });
    const { call } = await hostOf(tx, locked.call);
    const bound = withParticipant(call, user, (p) => ({ ...p, session, goneAt: null }));
    if (mine.session !== session || mine.goneAt !== null) await sql.saveCall(tx, locked.call, bound);
    // The device joined without naming its socket.
    if (mine.session === null && user !== call.createdBy) {
      const { sockets } = ctx.services;
      const frame = {
        t: 'call.ended',
        d: { call: sql.viewCall(call), endedHere: 'answered_elsewhere' },
      } as const;
      tx.afterCommit(() => sockets.toUsers(call.env, [user], frame, { except: session }));
    }
    return { node: call.node!, call: call.no };
  });
}
