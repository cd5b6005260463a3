import { IdParam, optional, page, pageQuery, UserId } from '../schemas/common.ts';
import {
  decisionFields,
  Report,
  ReportCase,
  ReportDecision,
  reportNote,
  ReportReason,
  ReportStatus,
} from '../schemas/reports.ts';
import { Type } from '../type.ts';
import { operation, pageCost, table } from './define.ts';

const managed = {
  tag: 'Reports',
  callers: ['server', 'dashboard'],
  permission: 'moderation.manage',
} as const;
const said = (schema: typeof IdParam, description: string) =>
  optional(Type.Unsafe<string>({ ...schema, description }));

export const reportsOperations = table(
  operation('reports.create', 'POST /v1/reports', {
    tag: 'Reports',
    feature: 'reports',
    callers: ['server', 'client'],
    rate: 'report',
    summary: 'Report a message, a user or a conversation',
    text: 'Give one of `messageId`, `userId` and `conversationId`; a client can report only objects that it sees. The report keeps the content of a message, so that an edit or a deletion hides nothing. If the same reporter reports the same target while the report is open, the answer is 200 with the same report. Reporters see only the status.',
    body: {
      messageId: said(IdParam, 'The message'),
      userId: said(UserId, 'The user'),
      conversationId: said(IdParam, 'The conversation'),
      reason: ReportReason,
      note: reportNote,
    },
    statuses: [201, 200],
    response: Report,
    errors: ['not_found', 'not_member'],
    cost: 2,
  }),

  operation('reports.list', 'GET /v1/reports', {
    ...managed,
    summary: 'List the review queue: reports grouped by target, newest first',
    text: 'Each item has all reports of one target that were open together. Reading it in the dashboard is audited as reading messages is.',
    query: {
      status: optional(ReportStatus),
      targetUserId: said(UserId, 'Only about this user and what it wrote'),
      conversationId: said(IdParam, 'Only about this conversation and its messages'),
      ...pageQuery,
    },
    response: page(ReportCase),
    cost: pageCost(20),
  }),

  operation('reports.update', 'PATCH /v1/reports/{reportId}', {
    ...managed,
    summary: 'Decide about a reported target',
    text: 'Closes all open reports of the same target and runs the `actions` in the same transaction: all of them or none. `delete_message` is for messages, `ban` for messages in groups; the others need a user. Reports that are already closed: `409 state_conflict`.',
    params: { reportId: IdParam },
    body: decisionFields,
    response: ReportDecision,
    errors: ['not_found', 'state_conflict'],
    cost: 4,
  }),
);
