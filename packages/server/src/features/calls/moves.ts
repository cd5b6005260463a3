import type { EndedHere } from '@parley/protocol';
import { tellOfCall } from '../../log/record.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import type { Services } from '../context.ts';
import { notify, pushedCall } from '../push/notify.ts';
import { ended, withMove } from './call-state.ts';
import { isIn } from './participant-state.ts';
import * as sql from './sql.ts';
import type { CallRow } from './sql.ts';

/**
 * Every move of a call goes through `change`: it writes what differs, queues webhooks and pushes in the same
 * transaction, and tells sockets and the media node after the commit.
 */

export type CallContext = { services: Pick<Services, 'calls' | 'sockets' | 'log' | 'clock'> };

export interface HereEnded {
  user: number;
  endedHere: EndedHere;
  /** Only this socket of the user, or all but this one; if neither is set, all. */
  only?: string;
  except?: string;
}

/** Pushes a call to users, as of the given moment in milliseconds. */
export async function push(
  { calls }: Pick<Services, 'calls'>,
  tx: Tx,
  { env, no }: { env: number; no: number },
  users: readonly number[],
  type: 'incoming' | 'missed',
  from: number,
): Promise<void> {
  if ((await notify(tx, [{ env, users, pushed: pushedCall(no, type, from) }])) > 0)
    tx.afterCommit(() => calls.pushQueued());
}

export async function change(
  ctx: CallContext,
  tx: Tx,
  before: CallRow,
  after: CallRow,
  here: readonly HereEnded[] = [],
): Promise<CallRow> {
  if (after === before) return after;
  const { calls, sockets, log, clock } = ctx.services;
  await sql.saveCall(tx, before, after);
  const was = new Map(before.participants.map((p) => [p.usr, p]));
  const missed = after.participants.filter(
    (p) => p.pushed && p.state === 'missed' && was.get(p.usr)?.state === 'ringing',
  );
  const users = missed.map((p) => p.usr);
  await push(ctx.services, tx, after, users, 'missed', clock.now());
  const over = after.status === 'ended';
  const view = sql.viewCall(after);
  if (over) await tellOfCall(log, tx, after, 'call.ended', view);
  tx.afterCommit(() => {
    if (over && before.status !== 'ended') calls.ended(after.endReason!);
    for (const { user, endedHere, ...where } of here)
      sockets.toUsers(after.env, [user], { t: 'call.ended', d: { call: view, endedHere } }, where);
    const t = over ? 'call.ended' : 'call.updated';
    sockets.toConversation(after.cid, { t, d: { call: view } });
    if (after.node === null) return;
    if (over) return calls.media.close(after.node, after.no);
    for (const p of after.participants) {
      const old = was.get(p.usr);
      if (old && isIn(old) && p.device !== old.device)
        calls.media.drop(after.node, { env: after.env, call: after.no, user: p.usr });
    }
  });
  return after;
}

/** Ends the live call of a conversation, if there is one. The conversation, which is deleted, must be locked. */
export async function endCallOf(
  ctx: CallContext,
  tx: Tx,
  { env, conv }: { env: number; conv: number },
): Promise<void> {
  const no = await sql.liveCallOf(tx, env, conv);
  const locked = no === undefined ? undefined : await sql.lockCall(tx, env, no);
  if (locked) await change(ctx, tx, locked.call, ended(locked.call, 'ended_by_server', locked.at));
}

/**
 * Removes a user from the calls that the user rings or takes part in: that of one conversation, which is locked, or all. The call of a
 * conversation is looked at whoever is in it, because the user may be joining at this moment; it is waited for.
 */
export async function leaveCalls(
  ctx: CallContext,
  tx: Tx,
  env: number,
  user: number,
  conv?: number,
): Promise<void> {
  const live =
    conv === undefined ? await sql.liveCallsWith(tx, env, user) : [await sql.liveCallOf(tx, env, conv)];
  for (const no of live) {
    const locked = no === undefined ? undefined : await sql.lockCall(tx, env, no);
    if (!locked) continue;
    const { call, at } = locked;
    await change(ctx, tx, call, withMove(call, user, 'leave', at), [{ user, endedHere: 'removed' }]);
  }
}
