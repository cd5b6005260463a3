import { Type } from './type.ts';
import type { Static } from 'typebox';
import { frame } from './frame.ts';
import { limits } from './limits.ts';
import { Call, CallMedia, CallSource, EndedHere } from './schemas/calls.ts';
import { IdParam, nullable, open, optional } from './schemas/common.ts';
import {
  DtlsParameters,
  IceCandidate,
  IceParameters,
  MediaKind,
  RtpCapabilities,
  RtpParameters,
} from './schemas/rtc.ts';

/**
 * Media signalling of calls over the chat socket (calls#frames). A device joins over REST, then opens its media
 * here; from then on the call frames of this socket belong to that device. What WebRTC and the media server exchange
 * is checked here and passed on unchanged.
 */

const callId = IdParam;

/** One end of a connection to the media server, for one direction. All of it is the media server's. */
export const CallTransport = open({
  id: Type.String(),
  iceParameters: IceParameters,
  iceCandidates: Type.Array(IceCandidate),
  dtlsParameters: DtlsParameters,
});
export type CallTransport = Static<typeof CallTransport>;

/** A media source of a participant. Screen audio is a `screen` of kind audio. */
export const CallProducer = open({
  id: Type.String(),
  userId: Type.String(),
  source: CallSource,
  kind: MediaKind,
  paused: Type.Boolean(),
});
export type CallProducer = Static<typeof CallProducer>;

export const CallConsumer = open({
  id: Type.String(),
  producerId: Type.String(),
  kind: MediaKind,
  rtpParameters: RtpParameters,
});
export type CallConsumer = Static<typeof CallConsumer>;

/** The call id of a connection test in the frames that follow `call.test`. */
export const testCallId = 'test';

export const callFrames = {
  'call.test': frame(
    {},
    open({ callId: Type.String(), media: CallMedia }),
    'Begins a test of the connection: a call of this user alone, which receives what it sends and ends by itself after a minute. The other frames take its `callId`; another test of the user takes its place',
  ),
  'call.open': frame(
    {
      callId,
      device: Type.String({ minLength: 1, maxLength: 100, description: 'From `media` of the join' }),
      rtpCapabilities: RtpCapabilities,
      resume: optional(
        Type.Boolean({ description: 'After a new socket: keep the media where it is still there' }),
      ),
      tcp: optional(Type.Boolean({ description: 'No UDP' })),
    },
    open({
      send: nullable(CallTransport),
      recv: nullable(CallTransport),
      producers: Type.Array(CallProducer),
    }),
    'Opens the media of a device that joined; both transports are null where it was resumed',
  ),
  'call.connect': frame(
    { callId, transportId: IdParam, dtlsParameters: DtlsParameters },
    open({}),
    'Connects a transport',
  ),
  'call.restart': frame(
    { callId, transportId: IdParam },
    open({ iceParameters: IceParameters }),
    'Restarts ICE after the network changed',
  ),
  'call.produce': frame(
    {
      callId,
      source: CallSource,
      kind: MediaKind,
      rtpParameters: RtpParameters,
      paused: optional(Type.Boolean()),
    },
    open({ producerId: Type.String() }),
    'Sends a source; one of each source and kind',
  ),
  'call.pause': frame(
    { callId, producerId: IdParam, paused: Type.Boolean() },
    open({}),
    'Mutes or unmutes an own source',
  ),
  'call.close': frame({ callId, producerId: IdParam }, open({}), 'Stops an own source'),
  'call.consume': frame(
    {
      callId,
      producerIds: Type.Array(IdParam, { minItems: 1, maxItems: limits.callConsumeAtOnce }),
    },
    open({ consumers: Type.Array(CallConsumer) }),
    'Receives sources of others, paused at first; those that are gone meanwhile are missing',
  ),
  'call.layers': frame(
    {
      callId,
      consumerId: IdParam,
      paused: optional(Type.Boolean()),
      spatialLayer: optional(Type.Integer({ minimum: 0, maximum: 2 })),
      temporalLayer: optional(Type.Integer({ minimum: 0, maximum: 2 })),
    },
    open({}),
    'Pauses or resumes what is received, and chooses its quality',
  ),
  'call.stats': frame(
    { callId },
    open({
      transports: Type.Array(
        open({
          id: Type.String(),
          iceState: Type.String(),
          dtlsState: Type.String(),
          protocol: nullable(Type.String()),
          bytesReceived: Type.Integer(),
          bytesSent: Type.Integer(),
        }),
      ),
    }),
    'What the media server sees of the own transports',
  ),
} as const;
export type CallFrameType = keyof typeof callFrames;
export const callFrameTypes = Object.keys(callFrames) as CallFrameType[];

/** Frames that the server sends about calls. */
export const callPushes = {
  'call.incoming': open({ call: Call }),
  'call.updated': open({ call: Call }),
  'call.ended': open({ call: Call, endedHere: optional(EndedHere) }),
  /** A source of a participant appeared, was paused or resumed, or is gone. */
  'call.producer': open({ callId, producer: CallProducer, closed: optional(Type.Boolean()) }),
  /** The call moved to another media server: open the media again. */
  'call.media': open({ callId }),
  /**
   * Who speaks, each with a level from 0 to 1; the list is empty if nobody speaks. `dominant` is the user who speaks
   * most.
   */
  'call.speakers': open({
    callId,
    levels: Type.Array(open({ userId: Type.String(), level: Type.Number({ minimum: 0, maximum: 1 }) })),
    dominant: nullable(Type.String()),
  }),
} as const;
