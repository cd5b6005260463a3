import type { Call, CallEndReason } from '@parley/protocol';
import { isIn, moved } from './participant-state.ts';
import type { Participant, ParticipantMove } from './participant-state.ts';

/**
 * The states of a call. No I/O; the time is passed in.
 *
 *   ringing ──a callee joins──► active ──last but one leaves (direct)──► ended: completed
 *      │                           └─────last one leaves (group)───────► ended: completed
 *      ├─the caller leaves──────────► ended: cancelled
 *      ├─nobody rings any more──────► ended: declined (one declined), missed, busy, or cancelled (all were removed)
 *      └─45 s───────────────────────► ended: missed
 *   ringing, active ──the server ends it, its conversation is deleted──► ended: ended_by_server
 *   ringing, active ──no media node can host it──► ended: failed
 *
 * When a call ends, participants who are in it have left, and those who still ring have missed it. An ended call
 * never changes.
 */

export interface CallState extends Pick<Call, 'status' | 'kind' | 'answeredAt' | 'endedAt' | 'endReason'> {
  /** True for a call of a direct conversation, which ends when only one person is left. */
  direct: boolean;
  createdBy: number;
  participants: readonly Participant[];
}

/** Moves one participant (or all of them) and then updates the state of the call. */
export function withMove<C extends CallState>(
  call: C,
  who: number | 'everybody',
  move: ParticipantMove,
  at: string,
): C {
  if (call.status === 'ended') return call;
  const participants = call.participants.map((p) =>
    who === 'everybody' || p.usr === who ? moved(p, move, at) : p,
  );
  if (participants.every((p, i) => p === call.participants[i])) return call;
  return settled({ ...call, participants }, at);
}

/** Adds a member who was not among those invited. */
export const withNewcomer = <C extends CallState>(call: C, newcomer: Participant, at: string): C =>
  settled({ ...call, participants: [...call.participants, newcomer] }, at);

export function ended<C extends CallState>(call: C, reason: CallEndReason, at: string): C {
  if (call.status === 'ended') return call;
  const participants = call.participants.map((p) =>
    isIn(p) ? moved(p, 'leave', at) : p.state === 'ringing' ? moved(p, 'miss', at) : p,
  );
  return { ...call, participants, status: 'ended', endReason: reason, endedAt: at };
}

/** 45 s are over: participants who have not answered missed the call, and a call that still rings was answered by nobody. */
export const rungOut = <C extends CallState>(call: C, at: string): C =>
  call.status === 'ringing' ? ended(call, 'missed', at) : withMove(call, 'everybody', 'miss', at);

/** The call in the state that follows from the states of its participants; also used right after it was created. */
export function settled<C extends CallState>(call: C, at: string): C {
  if (call.status === 'ended') return call;
  const callees = call.participants.filter((p) => p.usr !== call.createdBy);
  const caller = call.participants.find((p) => p.usr === call.createdBy);
  let now = call;
  if (now.status === 'ringing') {
    if (callees.some(isIn)) now = { ...now, status: 'active', answeredAt: at };
    else if (!caller || !isIn(caller)) return ended(now, 'cancelled', at);
    else if (!callees.some((p) => p.state === 'ringing')) return ended(now, unanswered(callees), at);
  }
  const present = now.participants.filter(isIn).length;
  if (now.status === 'active' && present <= (now.direct ? 1 : 0)) return ended(now, 'completed', at);
  return now;
}

function unanswered(callees: readonly Participant[]): CallEndReason {
  const some = (state: Participant['state']): boolean => callees.some((p) => p.state === state);
  if (some('declined')) return 'declined';
  if (some('missed')) return 'missed';
  return some('busy') || callees.length === 0 ? 'busy' : 'cancelled';
}
