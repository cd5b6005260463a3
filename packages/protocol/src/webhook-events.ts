import { Type } from './type.ts';
import type { Static } from 'typebox';
import { banned, Changes } from './events.ts';
import { Call } from './schemas/calls.ts';
import { nullable, open, optional, Seq, Timestamp } from './schemas/common.ts';
import { reactionChanges, reactionCounts } from './schemas/reactions.ts';
import { ReportStatus, reportTarget } from './schemas/reports.ts';
import { Conversation, Message } from './schemas/resources.ts';
import { RestrictionKind } from './schemas/restrictions.ts';
import { Via } from './schemas/rules.ts';

const conversationId = Type.String({ pattern: '^conv_' });
const messageId = Type.String({ pattern: '^msg_' });
const reportId = Type.String({ pattern: '^rep_' });
const userId = Type.String({ minLength: 1 });
const actorId = nullable(userId);
const lagSeconds = Type.Number({ minimum: 0 });

/**
 * webhooks#catalogue: `data` by event type. It is what was committed with the event, the same on every
 * attempt and replay: a message that was edited or deleted since still shows its text at that time.
 */
export const webhookEvents = {
  'message.created': open({ conversationId, seq: Seq, message: Message }),
  'message.updated': open({ conversationId, seq: Seq, message: Message }),
  'message.deleted': open({ conversationId, seq: Seq, messageId, hard: Type.Boolean() }),
  'message.reactions': open({
    conversationId,
    seq: Seq,
    messageId,
    total: reactionCounts.total,
    counts: reactionCounts.counts,
    votes: reactionCounts.votes,
    ...reactionChanges,
  }),
  'message.pinned': open({ conversationId, seq: Seq, messageId, pinned: Type.Boolean(), actorId }),
  'conversation.created': open({ conversation: Conversation }),
  'conversation.updated': open({ conversation: Conversation, changes: Changes }),
  'conversation.deleted': open({ conversationId }),
  'member.added': open({ conversationId, seq: Seq, userIds: Type.Array(userId), actorId, via: Via }),
  'member.removed': open({
    conversationId,
    seq: Seq,
    userId,
    actorId,
    reason: Type.Union([Type.Literal('removed'), Type.Literal('left')]),
    banned: optional(banned),
  }),
  'member.restricted': open({
    conversationId: nullable(conversationId),
    userId,
    kind: nullable(RestrictionKind),
    until: nullable(Timestamp),
    by: nullable(userId),
  }),
  'message.read': open({ conversationId, userId, lastReadSeq: Seq }),
  'user.blocked': open({ userId, blockedId: userId, blocked: Type.Boolean() }),
  'user.deleted': open({
    userId,
    messages: Type.Union([Type.Literal('anonymize'), Type.Literal('delete')]),
  }),
  'notification.needed': open({
    conversationId,
    messageId,
    recipientIds: Type.Array(userId),
    mentionedIds: Type.Array(userId, { description: 'Those of the recipients whom the message mentions' }),
  }),
  'report.created': open({
    reportId,
    ...reportTarget,
    reason: Type.String({ description: 'Why; `list`: a word list found it' }),
    reporterId: actorId,
  }),
  'report.resolved': open({
    reportId,
    ...reportTarget,
    status: ReportStatus,
    actions: Type.Array(Type.String(), { description: 'What was done' }),
    reports: Type.Integer({ minimum: 1, description: 'How many reports were closed' }),
  }),
  'sink.degraded': open({ lagSeconds }),
  'sink.failing': open({ errorClass: Type.String(), since: Timestamp }),
  'sink.recovered': open({ lagSeconds }),
  'hook.failing': open({ kind: Type.String(), since: Timestamp, errorClass: Type.String() }),
  'hook.recovered': open({ kind: Type.String() }),
  'call.started': open({ call: Call }),
  'call.ended': open({ call: Call }),
} as const;
export type WebhookEvents = { [K in keyof typeof webhookEvents]: Static<(typeof webhookEvents)[K]> };
export type WebhookEventName = keyof WebhookEvents;
export const webhookEventNames = Object.keys(webhookEvents) as WebhookEventName[];
