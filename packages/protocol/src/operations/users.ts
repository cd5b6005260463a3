import Type from 'typebox';
import { limits } from '../limits.ts';
import { Metadata, nullable, open, optional, page, pageQuery, Timestamp, UserId } from '../schemas/common.ts';
import { User } from '../schemas/resources.ts';
import { operation } from './define.ts';

const tag = 'Users';
const callers = ['server'] as const;
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
  summary: 'List users by id',
  tag,
  callers: ['server', 'dashboard'],
  permission: 'explorer.read',
  query: pageQuery,
  response: page(User),
});

export const usersDeactivate = operation('users.deactivate', 'POST /v1/users/{userId}/deactivate', {
  summary: 'Deactivate a user: its tokens are refused and its sockets closed',
  tag,
  callers,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersReactivate = operation('users.reactivate', 'POST /v1/users/{userId}/reactivate', {
  summary: 'Make a deactivated user active again',
  tag,
  callers,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersRevokeTokens = operation('users.revokeTokens', 'POST /v1/users/{userId}/revoke-tokens', {
  summary: 'Refuse every token issued before now and close the sockets',
  tag,
  callers,
  params,
  response: User,
  errors: ['not_found'],
});

export const usersErase = operation('users.erase', 'DELETE /v1/users/{userId}', {
  summary: 'Erase a user (GDPR): anonymize or delete its messages',
  tag,
  callers,
  params,
  query: {
    messages: optional(
      Type.Union([Type.Literal('anonymize'), Type.Literal('delete')], { default: 'anonymize' }),
    ),
  },
  errors: ['not_found'],
});
