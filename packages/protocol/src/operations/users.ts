import Type from 'typebox';
import { userIdPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import {
  IdParam,
  Metadata,
  nullable,
  open,
  optional,
  page,
  pageQuery,
  Timestamp,
  UserId,
} from '../schemas/common.ts';
import { SocketSession } from '../schemas/logs.ts';
import { PushDeviceView } from '../schemas/push.ts';
import { User } from '../schemas/resources.ts';
import { operation } from './define.ts';

const tag = 'Users';
const callers = ['server'] as const;
const managed = { tag, callers: ['server', 'dashboard'], permission: 'users.manage' } as const;
const params = { userId: UserId };

export const tokensCreate = operation('tokens.create', 'POST /v1/tokens', {
  summary: 'Mint a user token',
  tag: 'Tokens',
  callers: ['server', 'operator'],
  body: {
    userId: UserId,
    expiresIn: optional(
      Type.Integer({
        minimum: limits.tokenSeconds.min,
        maximum: limits.tokenSeconds.max,
        default: limits.tokenSeconds.default,
        description: 'seconds',
      }),
    ),
  },
  statuses: [201],
  response: open({ token: Type.String(), expiresAt: Timestamp }),
  errors: ['user_deactivated'],
});

export const usersUpsert = operation('users.upsert', 'PUT /v1/users/{userId}', {
  summary: 'Create a user or set the given fields',
  tag,
  callers,
  params,
  body: {
    name: optional(nullable(Type.String({ maxLength: limits.userNameCharacters }))),
    imageUrl: optional(
      nullable(Type.String({ maxLength: limits.imageUrlCharacters, pattern: '^https?://\\S+$' })),
    ),
    metadata: optional(Metadata),
  },
  response: User,
  errors: ['metadata_too_large', 'not_found'],
});

export const usersGet = operation('users.get', 'GET /v1/users/{userId}', {
  summary: 'Read a user; a client may read itself and users it shares a conversation with',
  tag,
  callers: ['server', 'client', 'dashboard'],
  permission: 'explorer.read',
  params,
  response: User,
  errors: ['not_found'],
});

export const usersList = operation('users.list', 'GET /v1/users', {
  summary: 'List users by id; those whose name begins with something, by name',
  tag,
  callers: ['server', 'dashboard'],
  permission: 'explorer.read',
  query: {
    ...pageQuery,
    prefix: optional(
      Type.String({ pattern: userIdPattern, description: 'Only users whose id begins with this' }),
    ),
    namePrefix: optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Only users whose name begins with this, in capitals or not',
      }),
    ),
  },
  response: page(User),
});

export const usersLookup = operation('users.lookup', 'POST /v1/users/lookup', {
  summary:
    'Read several users at once; those that the caller may not read, or that are unknown, are left out',
  tag,
  callers: ['server', 'client'],
  body: { userIds: Type.Array(UserId, { minItems: 1, maxItems: limits.pageMax }) },
  response: open({ data: Type.Array(User) }),
  changesNothing: true,
});

export const usersDeactivate = operation('users.deactivate', 'POST /v1/users/{userId}/deactivate', {
  summary: 'Deactivate a user: its tokens are refused and its sockets closed',
  ...managed,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersReactivate = operation('users.reactivate', 'POST /v1/users/{userId}/reactivate', {
  summary: 'Make a deactivated user active again',
  ...managed,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersRevokeTokens = operation('users.revokeTokens', 'POST /v1/users/{userId}/revoke-tokens', {
  summary: 'Refuse every token issued before now and close the sockets',
  ...managed,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersErase = operation('users.erase', 'DELETE /v1/users/{userId}', {
  summary: 'Erase a user (GDPR): anonymize or delete its messages',
  ...managed,
  params,
  query: {
    messages: optional(
      Type.Union([Type.Literal('anonymize'), Type.Literal('delete')], { default: 'anonymize' }),
    ),
    confirm: optional(
      Type.String({
        maxLength: 200,
        description: 'The name of the environment: the dashboard needs it in one of the kind production',
      }),
    ),
  },
  errors: ['not_found'],
});

const ofUsers = 'Sessions and devices';
const watched = { tag: ofUsers, callers: ['dashboard'], permission: 'explorer.read' } as const;
const ended = { tag: ofUsers, callers: ['dashboard'], permission: 'users.manage' } as const;

export const usersSessions = operation('users.sessions', 'GET /v1/users/{userId}/sessions', {
  ...watched,
  summary: 'Sockets of a user in the last 7 days, newest first',
  params,
  query: { ...pageQuery, live: optional(Type.Boolean({ description: 'true: only those that are open' })) },
  response: page(SocketSession),
  errors: ['not_found'],
});

export const usersEndSession = operation(
  'users.endSession',
  'DELETE /v1/users/{userId}/sessions/{sessionId}',
  {
    ...ended,
    summary: 'Close an open socket (4001). Its client may come back: to keep the user out, deactivate it',
    params: { ...params, sessionId: IdParam },
    errors: ['not_found'],
  },
);

export const usersDevices = operation('users.devices', 'GET /v1/users/{userId}/devices', {
  ...watched,
  summary: 'Devices that a user registered for push, latest first',
  params,
  response: open({ data: Type.Array(PushDeviceView) }),
  errors: ['not_found'],
});

export const usersRemoveDevice = operation(
  'users.removeDevice',
  'DELETE /v1/users/{userId}/devices/{deviceId}',
  {
    ...ended,
    summary: 'Stop pushes to a device until it is registered again',
    params: { ...params, deviceId: IdParam },
    errors: ['not_found'],
  },
);
