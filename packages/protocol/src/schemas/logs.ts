import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { nullable, open, optional, Timestamp } from './common.ts';
import { NotificationLevel } from './mentions.ts';

/**
 * dashboard#logs: what is stored about requests, sockets and deliveries. It never contains a body, a text
 * or a secret.
 */

const oneOf = <const V extends readonly string[]>(values: V, description?: string) =>
  Type.Unsafe<V[number]>({
    type: 'string',
    enum: [...values],
    ...(description === undefined ? {} : { description }),
  });

export const logKinds = ['request', 'socket', 'webhook', 'hook'] as const;
export const LogKind = oneOf(logKinds);
export type LogKind = Static<typeof LogKind>;

export const LogCaller = oneOf(
  ['server', 'client', 'dashboard', 'app'] as const,
  'Who called; app: all but the dashboard, sockets and webhooks included',
);
export type LogCaller = Static<typeof LogCaller>;

const SessionId = Type.String({ pattern: '^ses_' });

export const LogEntry = open(
  {
    id: Type.String(),
    at: Timestamp,
    kind: oneOf(
      logKinds,
      'A request over REST; an error or a refused login on a socket; an attempt to deliver a webhook; a call of a hook',
    ),
    requestId: nullable(Type.String({ pattern: '^req_' })),
    method: nullable(Type.String()),
    operation: nullable(
      Type.String({ description: 'Of a socket without one, the frame; of a webhook, the type of its event' }),
    ),
    status: nullable(
      Type.Integer({
        description: 'Of the answer over HTTP; of a socket, its close code. null: there was none',
      }),
    ),
    code: nullable(Type.String({ description: 'Of the error' })),
    durationMs: Type.Integer({ minimum: 0 }),
    caller: nullable(oneOf(['server', 'client', 'dashboard'])),
    callerId: nullable(Type.String({ description: 'The id of the key, or the e-mail of the account' })),
    keyName: nullable(Type.String({ description: 'Of the key, as it is now; null: it has none' })),
    userId: nullable(Type.String()),
    address: nullable(Type.String()),
    sessionId: nullable(SessionId),
    webhookId: nullable(Type.String({ pattern: '^wh_' })),
    deliveryId: nullable(Type.String({ pattern: '^whd_' })),
  },
  'LogEntry',
);
export type LogEntry = Static<typeof LogEntry>;

const count = Type.Integer({ minimum: 0 });
const rate = Type.Number({ minimum: 0 });

/** What happened in one minute. */
export const ActivityStep = open({
  t: Timestamp,
  messages: count,
  requests: count,
  errors: Type.Integer({ minimum: 0, description: 'Answers from 400 on; those from 500 on are among them' }),
  serverErrors: count,
  socketErrors: count,
  webhooksSucceeded: count,
  webhooksFailed: count,
});
export type ActivityStep = Static<typeof ActivityStep>;

export const Overview = open(
  {
    at: Timestamp,
    connections: Type.Integer({ minimum: 0, description: 'Open sockets, on all nodes' }),
    messagesPerSecond: rate,
    requestsPerSecond: rate,
    errorsPerSecond: rate,
    series: Type.Array(ActivityStep, { description: 'The last hour, a row for every minute, oldest first' }),
    webhooks: open({
      endpoints: count,
      disabled: count,
      failing: Type.Integer({ minimum: 0, description: 'Endpoints whose last delivery failed' }),
      pending: Type.Integer({ minimum: 0, description: 'Deliveries that wait, at most 10,000' }),
      succeeded: Type.Integer({ minimum: 0, description: 'Attempts of the last hour' }),
      failed: count,
    }),
    has: open({
      users: Type.Boolean(),
      conversations: Type.Boolean(),
      messages: Type.Boolean(),
      webhooks: Type.Boolean(),
    }),
  },
  'Overview',
);
export type Overview = Static<typeof Overview>;

/** A socket of a user, from login to close. */
export const SocketSession = open(
  {
    id: SessionId,
    userId: Type.String(),
    node: Type.String({ description: 'The process that it is, or was, connected to' }),
    address: nullable(Type.String()),
    sdk: nullable(Type.String({ description: 'As the client names itself' })),
    openedAt: Timestamp,
    closedAt: nullable(Timestamp),
    closeCode: nullable(Type.Integer({ description: 'null: it is open, or its node went without a word' })),
  },
  'SocketSession',
);
export type SocketSession = Static<typeof SocketSession>;

export const LiveNode = open(
  {
    id: Type.String(),
    host: Type.String(),
    version: Type.String(),
    roles: Type.Array(Type.String()),
    startedAt: Timestamp,
    seenAt: Timestamp,
    sockets: Type.Integer({ minimum: 0, description: 'Of this environment' }),
  },
  'LiveNode',
);
export type LiveNode = Static<typeof LiveNode>;

export const deliveryVerdicts = [
  'own_message',
  'not_member',
  'deactivated',
  'read',
  'delivered',
  'sent_to_socket',
  'pushed',
  'push_failed',
  'connected_since',
  'offline',
] as const;

export const timelineKinds = [
  'member',
  'committed',
  'fanout',
  'socket',
  'push',
  'webhook',
  'edited',
  'deleted',
  'delivered',
  'read',
] as const;

export const TimelineStep = open({
  at: nullable(Timestamp),
  kind: oneOf(timelineKinds),
  title: Type.String(),
  ok: nullable(Type.Boolean({ description: 'null: neither good nor bad' })),
  detail: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
});
export type TimelineStep = Static<typeof TimelineStep>;

/** Why a user did, or did not, get a message. */
export const DeliveryDiagnosis = open(
  {
    message: open({
      id: Type.String(),
      conversationId: Type.String(),
      seq: Type.Integer(),
      senderId: nullable(Type.String()),
      createdAt: Timestamp,
      editedAt: nullable(Timestamp),
      deletedAt: nullable(Timestamp),
    }),
    user: open({ id: Type.String(), deactivatedAt: nullable(Timestamp) }),
    verdict: oneOf(deliveryVerdicts),
    summary: Type.String({ description: 'The verdict in a sentence' }),
    member: open({
      was: nullable(Type.Boolean({ description: 'When the message was sent; null: not kept any more' })),
      is: Type.Boolean(),
      muted: nullable(Type.Boolean()),
      level: nullable(NotificationLevel),
      mutedUntil: nullable(Type.String({ format: 'date-time', description: 'When the level `none` ends' })),
      mention: nullable(
        oneOf(['user', 'everyone', 'here'], 'How the message mentions the user; null: it does not'),
      ),
      lastReadSeq: nullable(Type.Integer()),
      lastDeliveredSeq: nullable(Type.Integer()),
    }),
    timeline: Type.Array(TimelineStep, { description: 'Oldest first; what has no time is last' }),
    kept: open({
      membersSince: Timestamp,
      sessionsSince: Timestamp,
      pushSince: Timestamp,
      webhooksSince: Timestamp,
    }),
  },
  'DeliveryDiagnosis',
);
export type DeliveryDiagnosis = Static<typeof DeliveryDiagnosis>;

/** A frame of a user's socket without its content, or a report on the trace itself. */
export const TraceLine = open(
  {
    at: Timestamp,
    t: Type.String({
      description:
        'The frame; close: the socket closed; trace.started, trace.alive (every 5 s) and trace.ended tell of the trace itself',
    }),
    direction: optional(oneOf(['in', 'out'])),
    sessionId: optional(SessionId),
    node: optional(Type.String()),
    e: optional(Type.String()),
    cid: optional(Type.String()),
    seq: optional(Type.Integer()),
    id: optional(Type.Union([Type.String(), Type.Integer()])),
    re: optional(Type.Union([Type.String(), Type.Integer()])),
    code: optional(
      Type.Union([Type.String(), Type.Integer()], { description: 'Of an error, or of the close' }),
    ),
    bytes: optional(Type.Integer()),
    sessions: optional(Type.Integer({ description: 'Open when the trace started' })),
    reason: optional(oneOf(['time', 'lines', 'shutdown'])),
    dropped: optional(Type.Integer({ description: 'Frames that were too many to tell' })),
  },
  'TraceLine',
);
export type TraceLine = Static<typeof TraceLine>;
