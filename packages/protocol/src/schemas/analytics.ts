import { Type } from '../type.ts';
import type { Static, TProperties } from 'typebox';
import { planNames } from '../plans.ts';
import type { PlanName } from '../plans.ts';
import { nullable, open, Timestamp } from './common.ts';

/** analytics#response, analytics#usage. They contain only counts. */

const count = (description: string) => Type.Integer({ minimum: 0, description });
const mean = (description: string) => Type.Number({ minimum: 0, description });
const share = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

/** The figures of every step and of the whole range. Those marked "about" may miss a few seconds after a crash. */
const figures = {
  messages: count('Messages sent'),
  textMessages: count('of these: text alone'),
  attachmentMessages: count('of these: with attachments'),
  customMessages: count('of these: metadata alone'),
  replies: count('Messages that reply to another'),
  systemMessages: count('Messages without a sender'),
  edits: count('Edits of messages'),
  deletions: count('Messages that were deleted, each once'),
  attachments: count('Files sent with messages'),
  attachmentBytes: count('Their size'),
  reads: count('Read marks moved'),
  activeUsers: count('Distinct users who sent, read, connected or joined a call'),
  reactions: count('Reactions set'),
  rejected: count('Messages and edits refused by word lists and the hook (about)'),
  reports: count('Reports made (about)'),
  newUsers: count('Users created'),
  conversations: count('Conversations created'),
  joins: count('Users who joined a group by themselves, or by a link'),
  peakConnections: count('Most sockets open at one moment, on all nodes together (about)'),
  socketsOpened: count('Sockets that logged in (about)'),
  apiRequests: count('REST requests (about)'),
  requests2xx: count('of these: successful (about)'),
  requests4xx: count('of these: refused (about)'),
  requests5xx: count('of these: failed (about)'),
  errors: count('Requests and frames that failed on our side (about)'),
  webhookDeliveries: count('Webhook deliveries, each once however often it was tried'),
  webhookAttempts: count('Webhook attempts, repeated ones too'),
  webhookSuccessRate: share('Of the attempts, those answered with 2xx; 1 when there were none'),
  pushSent: count('Pushes that a provider took'),
  pushFailed: count('Pushes that a provider refused'),
  hookCalls: count('Messages and edits that a hook was to decide on (about)'),
  hookFailures: count('of these: it gave no answer (about)'),
  hooksFailedOpen: count('of these: stored nevertheless (about)'),
  avgAckMs: mean('From the arrival of a send on the socket to its ack (about)'),
  avgFanoutMs: mean('From the commit of a message to its last write on the node that took it (about)'),
  calls: count('Calls started'),
  videoCalls: count('of these: with video'),
  callsAnswered: count('Calls that somebody answered'),
  callsMissed: count('Calls that nobody answered'),
  callAnswerRate: share('Answered calls of those that ended; 0 when there were none'),
  callMinutes: mean('Minutes of all participants together'),
  avgCallSeconds: mean('Mean length of answered calls'),
} satisfies TProperties;

export const analyticsFigures = Object.keys(figures) as (keyof typeof figures)[];

export const Granularity = Type.Unsafe<'hour' | 'day'>({
  type: 'string',
  enum: ['hour', 'day'],
  default: 'day',
  description: 'hour: at most 7 days; day: at most 366 days',
});

const Range = open({
  from: Timestamp,
  to: Timestamp,
  granularity: Granularity,
  timezone: Type.Literal('UTC'),
  keptFrom: nullable(Type.String({ description: 'Hours before this time are not kept; null for days' })),
});

const PlanLimits = open({
  name: Type.Unsafe<PlanName>({ type: 'string', enum: [...planNames] }),
  mauLimit: nullable(Type.Integer({ description: 'Monthly active users; null: no limit' })),
  connectionLimit: nullable(Type.Integer({ description: 'Open sockets; null: no limit' })),
});

export const AnalyticsFigures = open(figures);
export type AnalyticsFigures = Static<typeof AnalyticsFigures>;

export const AnalyticsReport = open(
  {
    range: Range,
    totals: open({
      ...figures,
      messagesPerActiveUser: mean('Messages divided by active users'),
      mauThisMonth: count('Distinct active users of this calendar month, UTC'),
    }),
    series: Type.Array(open({ t: Timestamp, ...figures })),
    topConversations: Type.Array(
      open({
        id: Type.String(),
        name: nullable(Type.String()),
        type: Type.Unsafe<'direct' | 'group'>({ type: 'string', enum: ['direct', 'group'] }),
        messages: count('Messages in the range'),
        senders: count('Distinct senders in the range'),
        lastAt: Timestamp,
      }),
    ),
    topSenders: Type.Array(
      open({
        userId: Type.String(),
        name: nullable(Type.String()),
        messages: count('Messages in the range'),
      }),
    ),
    heatmap: Type.Array(Type.Array(Type.Integer()), {
      description: 'Messages by weekday (Monday first) and hour of the day, UTC',
    }),
    live: open({ connections: count('Sockets open now') }),
    plan: PlanLimits,
    storage: open({
      mode: Type.String({ description: 'managed or byo_db' }),
      sink: open({ status: Type.String(), lagSeconds: Type.Number() }),
    }),
    filling: nullable(
      open({
        progress: share('How much of what was there before analytics has been counted'),
      }),
    ),
  },
  'AnalyticsReport',
);
export type AnalyticsReport = Static<typeof AnalyticsReport>;

export const UsageReport = open(
  {
    data: Type.Array(
      open({
        date: Type.String({
          description: 'The day (2026-11-01); by hour, the beginning of the hour',
          examples: ['2026-11-01'],
        }),
        mau: count('Distinct active users of the calendar month (UTC) of this row, so far'),
        peakConnections: figures.peakConnections,
        messages: figures.messages,
        apiRequests: figures.apiRequests,
        webhookDeliveries: figures.webhookDeliveries,
        pushSent: figures.pushSent,
      }),
    ),
    plan: PlanLimits,
    range: Range,
  },
  'UsageReport',
);
export type UsageReport = Static<typeof UsageReport>;
