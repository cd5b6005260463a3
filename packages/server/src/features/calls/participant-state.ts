import type { CallParticipant, CallParticipantState } from '@parley/protocol';

/**
 * The states of one participant of a call. No I/O; the time is passed in.
 *
 *   (invited) ──► ringing ──join──► joining ──connect──► joined
 *                    │                 └──────leave────────┴──► left
 *                    ├─decline─► declined
 *                    ├─miss────► missed        it rang for 45 s, or the call ended
 *                    └─leave───► left          put out of the call while it rang
 *   (invited in another call) ──► busy
 *
 * Who starts a call, and a member who was not invited, begin as `joining`. From every other state a participant may join
 * while the call is live; one who is in it already joins with another device, or after a reload, and connects again. Moves
 * that are not drawn change nothing.
 */

export type ParticipantMove = 'join' | 'connect' | 'leave' | 'decline' | 'miss';

export interface Participant extends CallParticipant {
  /** The user's number. */
  usr: number;
  /** Since when media has been connected; null if it is not. */
  stayFrom: string | null;
  /** How many seconds it was connected before that. */
  seconds: number;
  /** The id that the last join gave out. */
  device: string | null;
  /** The socket on which that device opened media, and when that socket closed. */
  session: string | null;
  goneAt: string | null;
  pushed: boolean;
}

const moves: Record<ParticipantMove, Partial<Record<CallParticipantState, CallParticipantState>>> = {
  join: {
    ringing: 'joining',
    joining: 'joining',
    joined: 'joining',
    left: 'joining',
    declined: 'joining',
    missed: 'joining',
    busy: 'joining',
  },
  connect: { joining: 'joined' },
  leave: { ringing: 'left', joining: 'left', joined: 'left' },
  decline: { ringing: 'declined' },
  miss: { ringing: 'missed' },
};

export const isIn = ({ state }: Pick<Participant, 'state'>): boolean =>
  state === 'joining' || state === 'joined';

export function invited(
  who: { usr: number; userId: string },
  state: CallParticipantState,
  at: string,
): Participant {
  return {
    usr: who.usr,
    userId: who.userId,
    state,
    invitedAt: at,
    joinedAt: null,
    leftAt: null,
    stayFrom: null,
    seconds: 0,
    device: null,
    session: null,
    goneAt: null,
    pushed: false,
  };
}

/** The participant after the move; the same object if nothing changes. */
export function moved(one: Participant, move: ParticipantMove, at: string): Participant {
  const state = moves[move][one.state];
  if (state === undefined) return one;
  switch (state) {
    case 'joining':
      return { ...one, state, leftAt: null, session: null, goneAt: null };
    case 'joined':
      return { ...one, state, joinedAt: one.joinedAt ?? at, stayFrom: one.stayFrom ?? at };
    case 'left':
      return {
        ...one,
        state,
        leftAt: at,
        seconds: one.seconds + secondsBetween(one.stayFrom, at),
        stayFrom: null,
        device: null,
        session: null,
        goneAt: null,
      };
    default:
      return { ...one, state };
  }
}

/** Whole seconds; 0 if one of the times is missing. */
export const secondsBetween = (from: string | null, to: string | null): number =>
  from === null || to === null ? 0 : Math.max(0, Math.floor((Date.parse(to) - Date.parse(from)) / 1_000));
