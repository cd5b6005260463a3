import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { nullable, open, optional, Timestamp } from './common.ts';
import { RtpCapabilities } from './rtc.ts';

/** calls#record. */

const one = <const V extends readonly string[]>(values: V) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values] });

export const CallKind = one(['audio', 'video']);
export type CallKind = Static<typeof CallKind>;
export const CallStatus = one(['ringing', 'active', 'ended']);
export type CallStatus = Static<typeof CallStatus>;
export const CallEndReason = one([
  'completed',
  'missed',
  'declined',
  'cancelled',
  'busy',
  'failed',
  'ended_by_server',
]);
export type CallEndReason = Static<typeof CallEndReason>;
export const CallParticipantState = one([
  'ringing',
  'joining',
  'joined',
  'left',
  'declined',
  'missed',
  'busy',
]);
export type CallParticipantState = Static<typeof CallParticipantState>;
/** The source of a participant's media. */
export const CallSource = one(['mic', 'camera', 'screen']);
export type CallSource = Static<typeof CallSource>;

export const CallParticipant = open({
  userId: Type.String({ minLength: 1 }),
  state: CallParticipantState,
  invitedAt: Timestamp,
  joinedAt: nullable(Timestamp),
  leftAt: nullable(Timestamp),
});
export type CallParticipant = Static<typeof CallParticipant>;

export const Call = open(
  {
    id: Type.String({ pattern: '^call_' }),
    conversationId: Type.String({ pattern: '^conv_' }),
    kind: CallKind,
    status: CallStatus,
    createdBy: Type.String({ minLength: 1 }),
    createdAt: Timestamp,
    answeredAt: nullable(Timestamp),
    endedAt: nullable(Timestamp),
    endReason: nullable(CallEndReason),
    durationSeconds: Type.Integer({
      minimum: 0,
      description: 'From answeredAt to endedAt; 0 when never answered',
    }),
    metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    participants: Type.Array(CallParticipant),
  },
  'Call',
);
export type Call = Static<typeof Call>;

/** Why the call is over for one device or one user, although it may go on for others. */
export const EndedHere = one(['answered_elsewhere', 'declined_elsewhere', 'moved', 'removed', 'missed']);
export type EndedHere = Static<typeof EndedHere>;

/** A STUN or TURN server, as a browser's RTCPeerConnection takes it. */
const IceServer = open({
  urls: Type.Array(Type.String()),
  username: optional(Type.String()),
  credential: optional(Type.String()),
});

/** What the first `call.*` frame of a device needs (calls#frames). */
export const CallMedia = open({
  transport: Type.Literal('sfu'),
  iceServers: Type.Array(IceServer),
  device: Type.String({ description: 'Names this device in `call.open`; a later join makes another one' }),
  rtpCapabilities: RtpCapabilities,
});
export type CallMedia = Static<typeof CallMedia>;
