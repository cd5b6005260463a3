import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { IdParam, Moment, open, optional, page, pageQuery, UserId } from '../schemas/common.ts';
import {
  DeliveryDiagnosis,
  LiveNode,
  LogCaller,
  LogEntry,
  LogKind,
  Overview,
  SocketSession,
  TraceLine,
} from '../schemas/logs.ts';
import { operation, table } from './define.ts';

/** dashboard#logs: what happens in an environment, for the people who run it. */

const tag = 'Logs';
const callers = ['dashboard'] as const;
const permission = 'logs.read';

const live = { tag: 'Live', callers, permission } as const;

export const logsOperations = table(
  operation('logs.list', 'GET /v1/logs', {
    summary:
      'Requests, errors of sockets and attempts of webhooks of the last 7 days, newest first. A call looks through a bounded number of rows: a page may be short, even empty, and still have a nextCursor',
    text: 'Entries contain no bodies. `requestId` finds the request that an error names.',
    tag,
    callers,
    permission,
    query: {
      ...pageQuery,
      status: optional(
        Type.String({
          pattern: '^([1-5]xx|[1-5][0-9]{2}|[1-9][0-9]{3}|error)$',
          description: 'A status or close code; 4xx and so on; or error: all that failed',
        }),
      ),
      requestId: optional(IdParam),
      userId: optional(UserId),
      operation: optional(Type.String({ minLength: 1, maxLength: 100 })),
      code: optional(Type.String({ minLength: 1, maxLength: 100, description: 'Of the error' })),
      kind: optional(LogKind),
      caller: optional(LogCaller),
      from: optional(Moment),
      to: optional(Moment),
    },
    response: page(LogEntry),
    cost: ({ limit = limits.pageDefault }) => 2 + limit / 100,
  }),

  operation('overview.get', 'GET /v1/overview', {
    summary: 'How the environment is doing: connections, rates of the last minute, the last hour, webhooks',
    text: 'The figures for a start page.',
    tag,
    callers,
    permission,
    response: Overview,
    cost: 2,
  }),

  operation('live.nodes', 'GET /v1/live/nodes', {
    ...live,
    summary:
      'The processes of the service that are running, and how many sockets of the environment each has',
    text: 'One row per process.',
    response: open({ data: Type.Array(LiveNode) }),
  }),

  operation('live.sockets', 'GET /v1/live/sockets', {
    ...live,
    summary: 'Open sockets on all nodes, newest first',
    text: 'Open sockets, with their address and SDK version.',
    query: { ...pageQuery, userId: optional(UserId), node: optional(IdParam) },
    response: page(SocketSession),
  }),

  operation('live.trace', 'GET /v1/live/trace', {
    ...live,
    permission: 'content.read',
    summary:
      'Trace the frames of a user’s sockets live, on all nodes, without their contents: a stream of JSON objects, one per line (application/jsonl)',
    text: 'Shows which frames a client sends and receives, without their content. It ends after the requested time.',
    query: {
      userId: UserId,
      seconds: optional(Type.Integer({ minimum: 1, maximum: 300, default: 60 })),
    },
    response: TraceLine,
    formats: ['application/jsonl'],
    errors: ['not_found'],
  }),

  operation('diagnostics.delivery', 'GET /v1/diagnostics/delivery', {
    summary:
      'Explain why a user did or did not get a message: a timeline of its records, without its content',
    text: 'The timeline shows whether the user was a member and connected, the pushes or the reasons for none, and the receipts.',
    tag: 'Diagnosis',
    callers,
    permission,
    query: { messageId: IdParam, userId: UserId },
    response: DeliveryDiagnosis,
    errors: ['not_found'],
    cost: 5,
  }),
);
