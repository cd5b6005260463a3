import { Type } from '../type.ts';
import { userIdPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import {
  IdParam,
  Metadata,
  Moment,
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
import { operation, pageCost, table } from './define.ts';

const tag = 'Users';
const managed = { tag, callers: ['server', 'dashboard'], permission: 'users.manage' } as const;
const params = { userId: UserId };

const ofUsers = 'Sessions and devices';
const watched = { tag: ofUsers, callers: ['dashboard'], permission: 'explorer.read' } as const;
const ended = { tag: ofUsers, callers: ['dashboard'], permission: 'users.manage' } as const;

export const usersOperations = table(
  operation('tokens.create', 'POST /v1/tokens', {
    summary: 'Mint a user token',
    text: 'For servers without a JWT library; signing a token locally needs no request. An unknown user is created. Right after tokens were revoked, this endpoint knows the cut-off and makes a token that works.',
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
  }),

  operation('users.upsert', 'PUT /v1/users/{userId}', {
    summary: 'Create a user or set the given fields',
    text: 'Omitted fields stay as they are; `null` empties a field. Users need not be created first: naming a user as a member or signing a token for it creates the user without a name. Users who share a conversation get the frame `user.updated` after a change.',
    tag,
    callers: ['server', 'dashboard'],
    permission: 'explorer.write',
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
  }),

  operation('users.get', 'GET /v1/users/{userId}', {
    summary: 'Read a user; a client may read itself and users it shares a conversation with',
    text: 'A client may read itself and users with whom it shares a conversation; any other id is `403 forbidden`, known or not.',
    tag,
    callers: ['server', 'client', 'dashboard'],
    permission: 'explorer.read',
    params,
    response: User,
    errors: ['not_found'],
  }),

  operation('users.lookup', 'POST /v1/users/lookup', {
    summary: 'Read several users at once; unknown users and users that the caller may not read are left out',
    text: 'For names and pictures beside messages: up to 200 ids in one request. Users that are unknown or not to be seen are missing in the answer; order does not matter. The client SDK does this by itself (`client.users`).',
    tag,
    callers: ['server', 'client', 'dashboard'],
    permission: 'explorer.read',
    body: { userIds: Type.Array(UserId, { minItems: 1, maxItems: limits.pageMax }) },
    response: open({ data: Type.Array(User) }),
    changesNothing: true,
    cost: ({ userIds }) => 1 + userIds.length / 50,
  }),

  operation('users.list', 'GET /v1/users', {
    summary: 'List users by id; with `namePrefix` sorted by name',
    text: 'Users are sorted by id, or by name if `namePrefix` is given.',
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
    cost: pageCost(100),
  }),

  operation('users.deactivate', 'POST /v1/users/{userId}/deactivate', {
    summary: 'Deactivate a user: its tokens are refused and its sockets closed',
    text: 'A deactivated user cannot use the service: tokens are refused with `403 user_deactivated`, sockets close with 4003, and the user leaves live calls. Messages, memberships and unread counts stay. `reactivate` undoes it, and so does the time `until`; the user then needs a new token.',
    ...managed,
    params,
    body: {
      until: optional(
        Type.Unsafe<string>({ ...Moment, description: 'When it ends; left out: it has no end' }),
      ),
    },
    bodyOptional: true,
    response: User,
    errors: ['not_found'],
  }),

  operation('users.reactivate', 'POST /v1/users/{userId}/reactivate', {
    summary: 'Make a deactivated user active again',
    text: 'Tokens from before the deactivation stay refused.',
    ...managed,
    params,
    response: User,
    errors: ['not_found'],
  }),

  operation('users.revokeTokens', 'POST /v1/users/{userId}/revoke-tokens', {
    summary: 'Refuse every token issued before now and close the sockets',
    text: 'For a lost device or a leaked token: every token with an earlier `iat` is `401 token_invalid` from now on, and every socket of the user closes with 4001.',
    ...managed,
    params,
    response: User,
    errors: ['not_found'],
  }),

  operation('users.erase', 'DELETE /v1/users/{userId}', {
    summary: 'Erase a user (GDPR): anonymize or delete its messages',
    text: 'This cannot be undone. `deleted:…` replaces the id in all stored data. `anonymize` keeps the messages, `delete` removes them for good and removes the user from its groups. The service answers when its own store is clean; a job then cleans your own database. Emits `user.deleted`.',
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
  }),

  operation('users.sessions', 'GET /v1/users/{userId}/sessions', {
    ...watched,
    summary: 'Sockets of a user in the last 7 days, newest first',
    text: 'Where and when a user was connected: node, address, version of the SDK, how the socket ended.',
    params,
    query: { ...pageQuery, live: optional(Type.Boolean({ description: 'true: only those that are open' })) },
    response: page(SocketSession),
    errors: ['not_found'],
  }),

  operation('users.endSession', 'DELETE /v1/users/{userId}/sessions/{sessionId}', {
    ...ended,
    summary: 'Close an open socket (4001). Its client may come back: to keep the user out, deactivate it',
    text: 'The socket closes with 4001 on whichever node it is.',
    params: { ...params, sessionId: IdParam },
    errors: ['not_found'],
  }),

  operation('users.devices', 'GET /v1/users/{userId}/devices', {
    ...watched,
    summary: 'Devices that a user registered for push, latest first',
    text: 'The tokens of the devices are shown shortened.',
    params,
    response: open({ data: Type.Array(PushDeviceView) }),
    errors: ['not_found'],
  }),

  operation('users.removeDevice', 'DELETE /v1/users/{userId}/devices/{deviceId}', {
    ...ended,
    summary: 'Stop pushes to a device until it is registered again',
    text: 'The app registers the device again when it next starts, unless the user is deactivated.',
    params: { ...params, deviceId: IdParam },
    errors: ['not_found'],
  }),
);
