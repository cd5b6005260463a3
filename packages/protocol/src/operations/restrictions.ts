import { IdParam, page, pageQuery, UserId } from '../schemas/common.ts';
import { Restriction, RestrictionKind, restrictionFields, UserRestriction } from '../schemas/restrictions.ts';
import { operation, pageCost, table } from './define.ts';

const common = { tag: 'Restrictions', callers: ['server', 'client'] } as const;
const ofConversation = { conversationId: IdParam };
const ofMember = { ...ofConversation, userId: UserId };
const managed = {
  tag: 'Restrictions',
  callers: ['server', 'dashboard'],
  permission: 'moderation.manage',
} as const;

export const restrictionsOperations = table(
  operation('restrictions.set', 'PUT /v1/conversations/{conversationId}/restrictions/{userId}', {
    ...common,
    summary: 'Ban a user from a group, or silence a member (owner, moderator, server)',
    text: 'A silenced member reads everything and writes nothing: messages, edits, reactions, uploads and calls are `403 restricted`, with `retryAfterMs` if it ends. A banned user leaves the group and comes back only when the ban ends, or a server adds it. A moderator restricts neither owners nor moderators. There is one restriction for each user and group: a new one replaces it.',
    params: ofMember,
    body: { kind: RestrictionKind, ...restrictionFields },
    response: Restriction,
    errors: ['not_found', 'not_member'],
    cost: 2,
  }),

  operation('restrictions.remove', 'DELETE /v1/conversations/{conversationId}/restrictions/{userId}', {
    ...common,
    summary: 'Lift a ban or a silence (owner, moderator, server)',
    text: 'Also answers 204 if there was none. Lifting a ban does not make the user a member again.',
    params: ofMember,
    errors: ['not_found', 'not_member'],
    cost: 2,
  }),

  operation('restrictions.list', 'GET /v1/conversations/{conversationId}/restrictions', {
    ...common,
    summary: 'List the banned and silenced users of a group (owner, moderator, server)',
    text: 'Newest first, without ended restrictions.',
    params: ofConversation,
    query: pageQuery,
    response: page(Restriction),
    errors: ['not_found', 'not_member'],
    cost: pageCost(100),
  }),

  operation('users.listRestrictions', 'GET /v1/users/{userId}/restrictions', {
    ...managed,
    summary: 'Where a user is banned or silenced',
    text: 'In the environment and in groups, newest first, without ended restrictions. A deactivation is not in this list: it is in the record of the user.',
    params: { userId: UserId },
    query: pageQuery,
    response: page(UserRestriction),
    errors: ['not_found'],
    cost: pageCost(100),
  }),

  operation('users.silence', 'PUT /v1/users/{userId}/silence', {
    ...managed,
    summary: 'Silence a user in the whole environment',
    text: 'The user reads everything and writes nothing, in all conversations. To keep a user out altogether, deactivate it.',
    params: { userId: UserId },
    body: restrictionFields,
    bodyOptional: true,
    response: Restriction,
    errors: ['not_found'],
  }),

  operation('users.unsilence', 'DELETE /v1/users/{userId}/silence', {
    ...managed,
    summary: 'End the silence of a user in the environment',
    text: 'Also answers 204 if there was none. Silences in single groups stay.',
    params: { userId: UserId },
    errors: ['not_found'],
  }),
);
