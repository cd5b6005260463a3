import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { IdParam, open, optional, page, pageQuery } from '../schemas/common.ts';
import { Conversation } from '../schemas/resources.ts';
import { ConversationPreview, InviteLink, CreatedInviteLink } from '../schemas/rules.ts';
import { operation, pageCost, table } from './define.ts';

const common = { tag: 'Joining', feature: 'rules' } as const;
const params = { conversationId: IdParam };
const byLink = { ...common, callers: ['client'], params: { token: IdParam } } as const;
const managed = { ...common, callers: ['server', 'client'] } as const;
const { min, max, default: usual } = limits.inviteSeconds;

export const joiningOperations = table(
  operation('conversations.join', 'POST /v1/conversations/{conversationId}/join', {
    ...common,
    callers: ['client'],
    summary: 'Join a group whose rule `joining` is `open`',
    text: 'A user who is already a member gets the same answer, and nothing changes. Any other group is `404 not_found`, like a group that does not exist. A banned user gets `403 restricted`; a full group is `409 limit_reached`. Members get `member.added` with `via: join`. A user may try 60 times in an hour, links included.',
    params,
    response: Conversation,
    errors: ['not_found', 'restricted', 'limit_reached'],
    rate: 'join',
    cost: 4,
  }),

  operation('conversations.preview', 'GET /v1/conversations/{conversationId}/preview', {
    ...common,
    callers: ['client'],
    summary: 'See a listed group before joining it',
    text: 'Name, metadata, rules and the number of members; no messages and no names. Groups that are not listed are `404 not_found`.',
    params,
    response: ConversationPreview,
    errors: ['not_found'],
  }),

  operation('conversations.discover', 'GET /v1/conversations/public', {
    ...managed,
    summary: 'Find listed groups',
    text: 'Sorted by the number of members (most first), then by name. `q` finds words of names, without regard to case and accents; the last word may be the beginning of a word. If very many names match, only some of them are searched.',
    query: {
      q: optional(
        Type.String({
          minLength: 1,
          maxLength: limits.conversationNameCharacters,
          description: 'Words of the name, the last one perhaps not whole',
        }),
      ),
      ...pageQuery,
    },
    response: page(ConversationPreview),
    cost: pageCost(25),
  }),

  operation('invites.create', 'POST /v1/conversations/{conversationId}/invites', {
    ...managed,
    summary: 'Make a link by which users join a group (owner, moderator, server)',
    text: 'Needs the rule `joining` to be `link` or `open`; otherwise it is `409 state_conflict`. The token is shown this once; put it into an address of your app. A group has at most 20 links that work at a time.',
    params,
    body: {
      maxUses: optional(
        Type.Integer({ minimum: 1, maximum: limits.inviteUses, description: 'How many may join by it' }),
      ),
      expiresIn: optional(
        Type.Integer({
          minimum: min,
          maximum: max,
          default: usual,
          description: 'Seconds until it ends: a minute to 30 days',
        }),
      ),
    },
    bodyOptional: true,
    statuses: [201],
    response: CreatedInviteLink,
    errors: ['not_found', 'not_member', 'state_conflict', 'limit_reached'],
    cost: 2,
  }),

  operation('invites.list', 'GET /v1/conversations/{conversationId}/invites', {
    ...managed,
    summary: 'Links of a group that work (owner, moderator, server)',
    text: 'Newest first, without tokens, and without expired or used-up links.',
    params,
    response: open({ data: Type.Array(InviteLink) }),
    errors: ['not_found', 'not_member'],
  }),

  operation('invites.delete', 'DELETE /v1/conversations/{conversationId}/invites/{inviteId}', {
    ...managed,
    summary: 'Revoke a link (owner, moderator, server)',
    text: 'Nobody joins by it from then on. Also answers 204 if there is no such link.',
    params: { ...params, inviteId: IdParam },
    errors: ['not_found', 'not_member'],
    cost: 2,
  }),

  operation('invites.preview', 'GET /v1/invites/{token}', {
    ...byLink,
    summary: 'See the group that a link leads to',
    text: 'The same fields as the preview of a listed group; the group need not be listed. A link that has expired, is used up, was revoked or never existed is `404 not_found`, without a difference.',
    response: ConversationPreview,
    errors: ['not_found'],
  }),

  operation('invites.accept', 'POST /v1/invites/{token}', {
    ...byLink,
    summary: 'Join a group by a link',
    text: 'Counts one use, in the same transaction; a user who is already a member does not use up the link. The errors are the same as for joining an open group. Members get `member.added` with `via: link`.',
    response: Conversation,
    errors: ['not_found', 'restricted', 'limit_reached'],
    rate: 'join',
    cost: 4,
  }),
);
