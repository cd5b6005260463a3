import { Type } from './type.ts';
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { limits, realtime } from './limits.ts';
import { closed, nullable, open, optional, Seq, Timestamp, IdParam, UserId } from './schemas/common.ts';
import { callFrames, callPushes } from './call-frames.ts';
import { frame } from './frame.ts';
import { ownVotes, VotedOptions } from './schemas/polls.ts';
import { Emoji, Reactions } from './schemas/reactions.ts';
import { SyncResult, User } from './schemas/resources.ts';
import { ClientMsgId, editFields, messageFields } from './operations/messages.ts';
import type { Input, OperationName } from './operations/index.ts';
import type { EventName, SocketEvents } from './events.ts';
import { featureNames } from './features.ts';

/** socket#envelopes: client to server frames. */

export const RequestId = Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Type.Integer()]);

const token = Type.String({ minLength: 1, maxLength: 8_192 });
const cid = IdParam;

/** The fields of the frame, under their names in the operation. */
type Renamed<D, R> = { [K in keyof D as K extends keyof R ? R[K] & string : K]: D[K] };

/**
 * A frame that runs an operation, with the same executor as REST; the server binds it from this table. The compiler
 * checks here that its fields are a valid input of the operation and, on the server, that its answer or a mapping of
 * it is the ack.
 */
const runs = <
  N extends OperationName,
  P extends TProperties,
  A extends TSchema,
  const R extends { readonly [K in keyof P]?: string } = {},
>(
  operation: Renamed<Static<TObject<P>>, R> extends Input<N> ? N : never,
  d: P,
  ack: A,
  summary: string,
  rename: R = {} as R,
) => ({ ...frame(d, ack, summary), runs: { operation: operation as N, rename } });

export const PresenceItem = open(
  { userId: Type.String(), online: Type.Boolean(), lastSeenAt: nullable(Timestamp) },
  'PresenceItem',
);
export type PresenceItem = Static<typeof PresenceItem>;

export const clientFrames = {
  auth: frame({ token }, null, 'Must be first, within 5 s; answered by `hello`'),
  'message.send': runs(
    'messages.send',
    { cid, clientMsgId: ClientMsgId, ...messageFields },
    open({ clientMsgId: Type.String(), id: Type.String(), seq: Seq, createdAt: Timestamp }),
    'Send a message; a duplicate clientMsgId returns the original ack',
    { cid: 'conversationId' },
  ),
  'message.update': runs(
    'messages.update',
    { id: IdParam, ...editFields },
    open({ id: Type.String(), seq: Seq, version: Type.Integer(), editedAt: Timestamp }),
    'Edit a message; the ack’s seq is that of the edit',
    { id: 'messageId' },
  ),
  'message.delete': runs(
    'messages.delete',
    { id: IdParam },
    open({ id: Type.String(), seq: Seq, deletedAt: Timestamp }),
    'Delete a message (soft); the ack’s seq is that of the deletion',
    { id: 'messageId' },
  ),
  'reaction.set': frame(
    {
      id: IdParam,
      emoji: Emoji,
      on: Type.Boolean({ description: 'false takes it back' }),
      replace: optional(Type.Boolean({ description: 'Takes one’s other reactions to the message away' })),
    },
    open({ id: Type.String(), reactions: Reactions }),
    'React to a message, or take it back; the ack has the counts and one’s own reactions',
  ),
  'poll.vote': frame(
    { id: IdParam, options: VotedOptions },
    open({ id: Type.String(), reactions: Reactions }),
    'Vote in the poll of a message, change the vote, or take it back; the ack has the results and one’s own vote',
  ),
  typing: frame(
    { cid, state: Type.Union([Type.Literal('start'), Type.Literal('stop')]) },
    null,
    'Fire and forget; `start` at most once per 3 s',
  ),
  read: runs(
    'conversations.read',
    { cid, seq: Seq },
    open({ cid: Type.String(), lastReadSeq: Seq, mentionUnreadCount: Type.Integer({ minimum: 0 }) }),
    'Move the own read mark forward',
    { cid: 'conversationId' },
  ),
  delivered: frame(
    { items: Type.Array(closed({ cid, seq: Seq }), { maxItems: limits.deliveredItems }) },
    null,
    'Highest contiguous seq per conversation; at most once per second',
  ),
  sync: runs(
    'sync',
    { cursor: nullable(Type.String({ minLength: 1, maxLength: 512 })) },
    SyncResult,
    'What changed since the cursor',
  ),
  'presence.watch': frame(
    { userIds: Type.Array(UserId, { maxItems: limits.presenceWatch }) },
    open({ presence: Type.Array(PresenceItem) }),
    'Replaces the watch set; the ack is the snapshot',
  ),
  'token.refresh': frame(
    { token },
    open({ expiresAt: Timestamp }),
    'Extends the session without reconnecting',
  ),
  hb: frame({}, null, 'Reply to the server’s heartbeat'),
  ...callFrames,
} as const;

export type ClientFrames = typeof clientFrames;
export type FrameType = keyof ClientFrames;
export const frameTypes = Object.keys(clientFrames) as FrameType[];
export type FrameData<T extends FrameType> = Static<ClientFrames[T]['d']>;
export type AckData<T extends FrameType> = ClientFrames[T]['ack'] extends TSchema
  ? Static<ClientFrames[T]['ack']>
  : never;

/** Frames that run an operation of REST. */
export type OperationFrameType = {
  [T in FrameType]: ClientFrames[T] extends { runs: object } ? T : never;
}[FrameType];
export type OperationOf<T extends OperationFrameType> = ClientFrames[T]['runs']['operation'];

/** Frames without an answer need no request id. */
export const idOptional = (t: FrameType): boolean => clientFrames[t].ack === null;

/** The schema of the whole frame. */
export const frameSchema = (t: FrameType) =>
  closed({
    t: Type.Literal(t),
    id: idOptional(t) ? optional(RequestId) : RequestId,
    d: t === 'hb' ? optional(clientFrames[t].d) : clientFrames[t].d,
  });

export const Hello = open({
  sessionId: Type.String({ pattern: '^ses_' }),
  userId: Type.String(),
  serverTime: Timestamp,
  heartbeatMs: Type.Integer(),
  tokenExpiresAt: Timestamp,
  limits: open({ maxFrameBytes: Type.Integer(), sendsPerSecond: Type.Integer() }),
  storeEpoch: Type.String({
    description:
      'Another one than before: the store was restored to an earlier state, and what was shown may not have happened. Load everything again',
  }),
  features: Type.Array(Type.String(), {
    description: `The features that are on in this environment, of: ${featureNames.join(', ')}`,
  }),
  defaultLevel: Type.String({
    description: 'The notification level of members who have chosen none: `all` or `mentions`',
  }),
  personalRev: Type.Integer({
    minimum: 0,
    description:
      'Grows with every change of what belongs to the user alone (frame `personal`). Another one than before: load what is shown of it again',
  }),
});
export type Hello = Static<typeof Hello>;
export const helloLimits = { maxFrameBytes: limits.frameBytes, sendsPerSecond: realtime.sendsPerSecond };

/** socket#envelopes: `d` by `t`. */
export const ephemeralFrames = {
  receipt: open({
    cid: Type.String(),
    userId: Type.String(),
    lastReadSeq: optional(Seq),
    lastDeliveredSeq: optional(Seq),
  }),
  typing: open({
    cid: Type.String(),
    userId: Type.String(),
    state: Type.Union([Type.Literal('start'), Type.Literal('stop')]),
  }),
  presence: PresenceItem,
  'user.updated': open({ user: User }),
  'reaction.own': open({
    cid: Type.String(),
    id: Type.String(),
    revision: Type.Integer(),
    own: Type.Array(Type.String(), { description: 'The user’s own reactions to the message' }),
    ownVotes,
  }),
  personal: open({
    rev: Type.Integer({ minimum: 1, description: 'The `personalRev` from now on' }),
    kind: Type.String({ description: 'What changed: `level`, `block`, `restriction`' }),
    d: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'What the operation that changed it answered',
    }),
  }),
  hb: open({}),
  goaway: open({ reconnectAfterMs: Type.Integer() }),
  resync_required: open({ cid: Type.String() }),
  resync_hint: open({}),
  token_expiring: open({ expiresAt: Timestamp }),
  ...callPushes,
} as const;
export type EphemeralFrames = { [K in keyof typeof ephemeralFrames]: Static<(typeof ephemeralFrames)[K]> };
export type EphemeralType = keyof EphemeralFrames;
export type EphemeralFrame = { [K in EphemeralType]: { t: K; d: EphemeralFrames[K] } }[EphemeralType];

export type EventFrame = {
  [K in EventName]: { t: 'event'; e: K; cid: string; seq: number; d: SocketEvents[K] };
}[EventName];

/** Everything that a server may send. */
export type ServerFrame =
  | { t: 'hello'; d: Hello }
  | { t: 'ack'; re: string | number; d: unknown }
  | {
      t: 'error';
      re?: string | number;
      code: string;
      message: string;
      retryAfterMs?: number;
      details?: Record<string, unknown>;
    }
  | EventFrame
  | EphemeralFrame;
