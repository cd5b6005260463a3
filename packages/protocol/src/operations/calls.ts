import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { Call, CallKind, CallMedia, CallSource } from '../schemas/calls.ts';
import { Cursor, IdParam, Metadata, nullable, open, optional, UserId } from '../schemas/common.ts';
import { operation, pageCost, table } from './define.ts';

const tag = 'Calls';
const params = { callId: IdParam };
const participant = { callId: IdParam, userId: UserId };
const answer = open({ call: Call });
const readers = { tag, callers: ['server', 'client', 'dashboard'], permission: 'explorer.read' } as const;
const managers = { tag, callers: ['server', 'dashboard'], permission: 'calls.manage' } as const;

export const callsOperations = table(
  operation('calls.start', 'POST /v1/calls', {
    summary:
      'Call the other members of a conversation; 200 with the live call if there is one. A server names the caller',
    text: 'The call rings on every device of the other members for 45 s, by socket and by push. A user who is in another call is `busy`. A conversation has at most one live call.',
    tag,
    callers: ['server', 'client'],
    body: {
      conversationId: IdParam,
      kind: CallKind,
      metadata: optional(Metadata),
      callerId: optional(UserId),
    },
    statuses: [201, 200],
    response: Call,
    errors: [
      'not_found',
      'not_member',
      'metadata_too_large',
      'user_deactivated',
      'plan_limit_reached',
      'calls_unavailable',
    ],
    cost: 4,
  }),

  operation('calls.list', 'GET /v1/calls', {
    ...readers,
    summary: 'List calls, newest first; a client sees the calls of its own conversations',
    text: 'Calls of a conversation or of a user, or only live ones.',
    query: {
      conversationId: optional(IdParam),
      userId: optional(UserId),
      live: optional(Type.Boolean({ description: 'true: ringing or active; false: ended' })),
      limit: optional(
        Type.Integer({ minimum: 1, maximum: limits.callsPageMax, default: limits.pageDefault }),
      ),
      cursor: optional(Cursor),
    },
    response: open({
      data: Type.Array(Call),
      hasMore: Type.Boolean(),
      nextCursor: nullable(Type.String()),
    }),
    errors: ['not_found', 'not_member'],
    cost: pageCost(10),
  }),

  operation('calls.get', 'GET /v1/calls/{callId}', {
    ...readers,
    summary: 'Read a call',
    text: 'The call with its participants and the state of each.',
    params,
    response: Call,
    errors: ['not_found', 'not_member'],
  }),

  operation('calls.join', 'POST /v1/calls/{callId}/join', {
    summary: 'Answer, join late, or join again; another device of the same user gives its place to this one',
    text: 'The answer has the parameters of the media connection; the SDK does the rest. With `answer` the call fails if another device of the user was first. The plan limits the number of participants.',
    tag,
    callers: ['client'],
    params,
    query: {
      sessionId: optional(
        Type.String({
          maxLength: 100,
          description: 'The socket of this device (`hello`): the user’s other devices stop ringing at once',
        }),
      ),
      answer: optional(
        Type.Boolean({
          description: 'Only while it rings: `call_ended` where another device of the user was first',
        }),
      ),
    },
    response: open({ call: Call, media: CallMedia }),
    errors: [
      'not_found',
      'not_member',
      'blocked',
      'restricted',
      'call_ended',
      'plan_limit_reached',
      'calls_unavailable',
    ],
  }),

  operation('calls.decline', 'POST /v1/calls/{callId}/decline', {
    summary: 'Do not answer; all devices of the user stop ringing',
    text: 'When every callee has declined, the call ends with `declined`.',
    tag,
    callers: ['client'],
    params,
    response: answer,
    errors: ['not_found', 'not_member', 'call_ended'],
  }),

  operation('calls.leave', 'POST /v1/calls/{callId}/leave', {
    summary: 'Leave a call; if the caller leaves while it rings, the call is cancelled',
    text: 'A call of two ends when the first one leaves, a group call when the last one leaves.',
    tag,
    callers: ['client'],
    params,
    response: answer,
    errors: ['not_found', 'not_member', 'call_ended'],
  }),

  operation('calls.end', 'POST /v1/calls/{callId}/end', {
    ...managers,
    summary: 'End a call for everyone',
    text: 'The call ends with `ended_by_server`; every device gets `call.ended`.',
    params,
    response: answer,
    errors: ['not_found', 'call_ended'],
  }),

  operation('calls.remove', 'POST /v1/calls/{callId}/participants/{userId}/remove', {
    ...managers,
    summary: 'Put a participant out of a call',
    text: 'The participant may join again unless it is also removed from the conversation.',
    params: participant,
    response: answer,
    errors: ['not_found', 'call_ended'],
  }),

  operation('calls.mute', 'POST /v1/calls/{callId}/participants/{userId}/mute', {
    ...managers,
    summary: 'Mute a source of a participant; the participant may unmute it',
    text: 'Answers `400 invalid_request` if the user is not connected to media.',
    params: participant,
    body: { source: CallSource },
    response: answer,
    errors: ['not_found', 'call_ended', 'calls_unavailable'],
  }),
);
