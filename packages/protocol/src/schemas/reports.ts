import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { Moment, nullable, open, optional, Seq, Timestamp } from './common.ts';
import { Mention } from './mentions.ts';

const oneOf = <const V extends readonly string[]>(values: V, description: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], description });

export const reportReasons = [
  'spam',
  'abuse',
  'violence',
  'sexual',
  'self_harm',
  'illegal',
  'other',
] as const;
export type ReportReason = (typeof reportReasons)[number];
export const ReportReason = oneOf(reportReasons, 'Why');
/** Word lists report, too. */
const AnyReason = oneOf([...reportReasons, 'list'], 'Why; `list`: a word list found it');

export const reportActions = ['delete_message', 'silence', 'ban', 'deactivate'] as const;
export type ReportAction = (typeof reportActions)[number];
const ReportAction = oneOf(reportActions, 'What was done');

export const ReportStatus = oneOf(['open', 'resolved', 'dismissed'], 'Where it stands');
export type ReportStatus = Static<typeof ReportStatus>;

export const Report = open(
  { id: Type.String({ pattern: '^rep_', description: 'The report’s id' }), status: ReportStatus },
  'Report',
);
export type Report = Static<typeof Report>;

const kind = oneOf(['message', 'user', 'conversation'], 'What was reported');
/** What was reported: a message, a user or a conversation, by the ids that lead there. */
export const reportTarget = {
  kind,
  messageId: nullable(Type.String({ description: 'The message; null unless one was reported' })),
  seq: nullable(Type.Unsafe<number>({ ...Seq, description: 'Where the message stands in its conversation' })),
  conversationId: nullable(
    Type.String({ description: 'The conversation, also that of a message; null for a user' }),
  ),
  userId: nullable(Type.String({ description: 'The user, or who wrote the message; null: nobody' })),
};
export const ReportTarget = open(reportTarget, 'ReportTarget');
export type ReportTarget = Static<typeof ReportTarget>;

/** What a message said when it was reported. */
export const ReportSnapshot = open(
  {
    version: Type.Integer({ minimum: 1, description: 'The version of the message that was reported' }),
    text: nullable(Type.String()),
    mentions: Type.Array(Mention),
    files: Type.Array(Type.String(), { description: 'Names of its attachments' }),
    poll: optional(
      open({
        question: Type.String(),
        options: Type.Array(Type.String(), { description: 'What could be chosen' }),
      }),
    ),
  },
  'ReportSnapshot',
);
export type ReportSnapshot = Static<typeof ReportSnapshot>;

export const ReportEntry = open(
  {
    id: Type.String(),
    reason: AnyReason,
    note: nullable(Type.String({ description: 'What the reporter wrote' })),
    reporterId: nullable(Type.String({ description: 'Who reported it; null: a server, or a word list' })),
    at: Timestamp,
  },
  'ReportEntry',
);
export type ReportEntry = Static<typeof ReportEntry>;

/** All reports of one target that were open together. */
export const ReportCase = open(
  {
    id: Type.String({ pattern: '^rep_', description: 'The id of the first of these reports' }),
    target: ReportTarget,
    reports: Type.Integer({ minimum: 1, description: 'How many there are; 1,000 means that many or more' }),
    reasons: Type.Array(
      open({ reason: AnyReason, count: Type.Integer({ minimum: 1, description: 'Reports with it' }) }),
      { description: 'Why, most frequent first' },
    ),
    firstAt: Timestamp,
    lastAt: Timestamp,
    snapshot: nullable(ReportSnapshot),
    laterSnapshots: Type.Array(ReportSnapshot, {
      description: 'What it said later, if it was edited and reported again; at most 9',
    }),
    latest: Type.Array(ReportEntry, { description: 'The newest of these reports, at most 10' }),
    status: ReportStatus,
    actions: Type.Array(ReportAction, { description: 'What was done' }),
    resolvedAt: nullable(Timestamp),
    resolvedBy: nullable(
      Type.String({ description: 'Whoever decided in the dashboard; null: a server, or nobody yet' }),
    ),
    resolution: nullable(Type.String({ description: 'The note of whoever decided' })),
  },
  'ReportCase',
);
export type ReportCase = Static<typeof ReportCase>;

/** What was decided. */
export const ReportDecision = open(
  {
    id: Type.String({ pattern: '^rep_', description: 'The id of the first of the reports' }),
    target: ReportTarget,
    reports: Type.Integer({ minimum: 1, description: 'How many reports were closed' }),
    status: ReportStatus,
    actions: Type.Array(ReportAction, { description: 'What was done' }),
    resolvedAt: Timestamp,
  },
  'ReportDecision',
);
export type ReportDecision = Static<typeof ReportDecision>;

const note = (description: string) =>
  optional(Type.String({ minLength: 1, maxLength: limits.reportNoteCharacters, description }));

export const reportNote = note('More about it, for those who decide');

export const decisionFields = {
  status: oneOf(['resolved', 'dismissed'], '`dismissed`: there was nothing wrong'),
  actions: optional(
    Type.Array(ReportAction, {
      maxItems: reportActions.length,
      uniqueItems: true,
      description:
        'What is done in the same transaction. `delete_message`: for all; `silence`: the user writes nothing in the environment; `ban`: the user leaves the group of the message; `deactivate`: the user is out',
    }),
  ),
  until: optional(
    nullable(
      Type.Unsafe<string>({
        ...Moment,
        description: 'When a silence, ban or deactivation ends; null, or left out: it has no end',
      }),
    ),
  ),
  note: note('Why it was decided so, for colleagues'),
};
