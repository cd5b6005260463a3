import { Type } from '../type.ts';
import {
  AccountSession,
  Invitation,
  InvitationWithLink,
  Organization,
  OrganizationMember,
  OrganizationRole,
} from '../schemas/accounts.ts';
import { IdParam, line, nullable, open, optional } from '../schemas/common.ts';
import { Email, LinkToken, Password, PersonName } from './accounts.ts';
import { operation, table } from './define.ts';

/** dashboard#roles: organizations, their people, and how people join. */

const callers = ['dashboard'] as const;
const organization = { callers, scope: 'organization', tag: 'Organizations' } as const;
const anyone = { callers: ['anyone'], scope: 'account', tag: 'Organizations' } as const;
const params = { organizationId: IdParam };

export const OrganizationName = line({ minLength: 1, maxLength: 200 });

export const organizationsOperations = table(
  operation('organizations.get', 'GET /v1/organizations/{organizationId}', {
    ...organization,
    permission: 'organization.read',
    summary: 'Read an organization',
    text: 'The organization, with the caller’s own role in it.',
    params,
    response: Organization,
    errors: ['not_found'],
  }),

  operation('organizations.update', 'PATCH /v1/organizations/{organizationId}', {
    ...organization,
    permission: 'organization.update',
    summary: 'Rename an organization',
    text: 'Changes the name; the id stays.',
    params,
    body: { name: OrganizationName },
    response: Organization,
    errors: ['not_found'],
  }),

  operation('organizations.delete', 'DELETE /v1/organizations/{organizationId}', {
    ...organization,
    permission: 'organization.delete',
    recent: true,
    summary: 'Delete an organization with its environments',
    text: 'Keys and tokens of its environments are refused and sockets closed at once; their data is removed in the background. It cannot be undone.',
    params,
    query: {
      name: Type.String({ maxLength: 200, description: 'The name of the organization, typed again' }),
    },
    errors: ['not_found'],
  }),

  operation('organizations.listMembers', 'GET /v1/organizations/{organizationId}/members', {
    ...organization,
    permission: 'organization.read',
    summary: 'List the people of an organization, by e-mail address',
    text: 'People with their roles, and whether they use a second factor.',
    params,
    response: open({ data: Type.Array(OrganizationMember) }),
    errors: ['not_found'],
  }),

  operation('organizations.updateMember', 'PATCH /v1/organizations/{organizationId}/members/{accountId}', {
    ...organization,
    permission: 'people.manage',
    recent: true,
    summary: 'Change a person’s role; only owners make, change and remove owners, and one owner stays',
    text: 'Roles: owner (everything), admin (everything except changing owners), developer (environments, keys, webhooks, storage, and reading messages), viewer (reads everything except messages and secrets).',
    params: { ...params, accountId: IdParam },
    body: { role: OrganizationRole },
    response: OrganizationMember,
    errors: ['not_found'],
  }),

  operation('organizations.removeMember', 'DELETE /v1/organizations/{organizationId}/members/{accountId}', {
    ...organization,
    permission: 'people.manage',
    summary: 'Remove a person; everybody may leave, but the last owner',
    text: 'The account’s sessions stay, but no longer reach this organization.',
    params: { ...params, accountId: IdParam },
    errors: ['not_found'],
  }),

  operation('organizations.leave', 'DELETE /v1/organizations/{organizationId}/membership', {
    ...organization,
    permission: 'organization.read',
    summary: 'Leave an organization; the last owner cannot',
    text: 'If you are the last owner, make somebody else an owner first.',
    params,
    errors: ['not_found'],
  }),

  operation('invitations.list', 'GET /v1/organizations/{organizationId}/invitations', {
    ...organization,
    permission: 'people.manage',
    summary: 'List open invitations, newest first',
    text: 'Invitations that were neither accepted nor withdrawn.',
    params,
    response: open({ data: Type.Array(Invitation) }),
    errors: ['not_found'],
  }),

  operation('invitations.create', 'POST /v1/organizations/{organizationId}/invitations', {
    ...organization,
    permission: 'people.manage',
    recent: true,
    summary: 'Invite somebody, for 7 days; inviting an address again replaces the invitation before',
    text: 'The link is sent by e-mail; if no mail server is set, it is in the answer, to be passed on by hand.',
    params,
    body: { email: Email, role: OrganizationRole },
    statuses: [201],
    response: InvitationWithLink,
    errors: ['not_found', 'already_member'],
  }),

  operation('invitations.delete', 'DELETE /v1/organizations/{organizationId}/invitations/{invitationId}', {
    ...organization,
    permission: 'people.manage',
    summary: 'Withdraw an invitation',
    text: 'The link no longer works.',
    params: { ...params, invitationId: IdParam },
    errors: ['not_found'],
  }),

  operation('invitations.preview', 'POST /v1/invitations/preview', {
    ...anyone,
    summary: 'Read an invitation',
    text: 'Needs no sign-in, only the token of the link.',
    body: { token: LinkToken },
    response: open({
      email: Type.String(),
      organization: nullable(Type.String({ description: 'null: a new one will be made' })),
      role: OrganizationRole,
      hasAccount: Type.Boolean({ description: 'Sign in with it, then accept' }),
    }),
    errors: ['not_found'],
  }),

  operation('invitations.accept', 'POST /v1/invitations/accept', {
    ...anyone,
    summary:
      'Accept an invitation: as the account that is signed in, or with a password for a new one; the session is in the cookie',
    text: 'The role is the one that the invitation names.',
    body: {
      token: LinkToken,
      name: optional(PersonName),
      password: optional(Password),
      organizationName: optional(OrganizationName),
    },
    response: AccountSession,
    errors: ['not_found', 'already_member', 'invalid_credentials'],
    cost: 0,
  }),

  operation('accounts.signUp', 'POST /v1/sign-up', {
    ...anyone,
    summary: 'Send a stranger a link to make an account; only where CHAT_SIGN_UP is open',
    text: 'Sends a link that creates an account with a new organization.',
    body: { email: Email },
    statuses: [202],
    response: open({}),
  }),
);
