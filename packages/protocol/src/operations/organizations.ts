import Type from 'typebox';
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
import { operation } from './define.ts';

/** DECISIONS, Control plane: organizations, their people, and how people join. */

const callers = ['dashboard'] as const;
const organization = { callers, scope: 'organization', tag: 'Organizations' } as const;
const anyone = { callers: ['anyone'], scope: 'account', tag: 'Organizations' } as const;
const params = { organizationId: IdParam };

export const OrganizationName = line({ minLength: 1, maxLength: 200 });

export const organizationsGet = operation('organizations.get', 'GET /v1/organizations/{organizationId}', {
  ...organization,
  permission: 'organization.read',
  summary: 'Read an organization',
  params,
  response: Organization,
  errors: ['not_found'],
});

export const organizationsUpdate = operation(
  'organizations.update',
  'PATCH /v1/organizations/{organizationId}',
  {
    ...organization,
    permission: 'organization.update',
    summary: 'Rename an organization',
    params,
    body: { name: OrganizationName },
    response: Organization,
    errors: ['not_found'],
  },
);

export const organizationsDelete = operation(
  'organizations.delete',
  'DELETE /v1/organizations/{organizationId}',
  {
    ...organization,
    permission: 'organization.delete',
    recent: true,
    summary: 'Delete an organization with its environments',
    params,
    query: {
      name: Type.String({ maxLength: 200, description: 'The name of the organization, typed again' }),
    },
    errors: ['not_found'],
  },
);

export const organizationsListMembers = operation(
  'organizations.listMembers',
  'GET /v1/organizations/{organizationId}/members',
  {
    ...organization,
    permission: 'organization.read',
    summary: 'List the people of an organization, by e-mail address',
    params,
    response: open({ data: Type.Array(OrganizationMember) }),
    errors: ['not_found'],
  },
);

export const organizationsUpdateMember = operation(
  'organizations.updateMember',
  'PATCH /v1/organizations/{organizationId}/members/{accountId}',
  {
    ...organization,
    permission: 'people.manage',
    recent: true,
    summary: 'Change a person’s role; only owners make, change and remove owners, and one owner stays',
    params: { ...params, accountId: IdParam },
    body: { role: OrganizationRole },
    response: OrganizationMember,
    errors: ['not_found'],
  },
);

export const organizationsRemoveMember = operation(
  'organizations.removeMember',
  'DELETE /v1/organizations/{organizationId}/members/{accountId}',
  {
    ...organization,
    permission: 'people.manage',
    summary: 'Remove a person; everybody may leave, but the last owner',
    params: { ...params, accountId: IdParam },
    errors: ['not_found'],
  },
);

export const organizationsLeave = operation(
  'organizations.leave',
  'DELETE /v1/organizations/{organizationId}/membership',
  {
    ...organization,
    permission: 'organization.read',
    summary: 'Leave an organization; the last owner cannot',
    params,
    errors: ['not_found'],
  },
);

export const invitationsList = operation(
  'invitations.list',
  'GET /v1/organizations/{organizationId}/invitations',
  {
    ...organization,
    permission: 'people.manage',
    summary: 'List open invitations, newest first',
    params,
    response: open({ data: Type.Array(Invitation) }),
    errors: ['not_found'],
  },
);

export const invitationsCreate = operation(
  'invitations.create',
  'POST /v1/organizations/{organizationId}/invitations',
  {
    ...organization,
    permission: 'people.manage',
    recent: true,
    summary: 'Invite somebody, for 7 days; inviting an address again replaces the invitation before',
    params,
    body: { email: Email, role: OrganizationRole },
    statuses: [201],
    response: InvitationWithLink,
    errors: ['not_found', 'already_member'],
  },
);

export const invitationsDelete = operation(
  'invitations.delete',
  'DELETE /v1/organizations/{organizationId}/invitations/{invitationId}',
  {
    ...organization,
    permission: 'people.manage',
    summary: 'Withdraw an invitation',
    params: { ...params, invitationId: IdParam },
    errors: ['not_found'],
  },
);

export const invitationsPreview = operation('invitations.preview', 'POST /v1/invitations/preview', {
  ...anyone,
  summary: 'What an invitation is for',
  body: { token: LinkToken },
  response: open({
    email: Type.String(),
    organization: nullable(Type.String({ description: 'null: a new one will be made' })),
    role: OrganizationRole,
    hasAccount: Type.Boolean({ description: 'Sign in with it, then accept' }),
  }),
  errors: ['not_found'],
});

export const invitationsAccept = operation('invitations.accept', 'POST /v1/invitations/accept', {
  ...anyone,
  summary:
    'Accept an invitation: as the account that is signed in, or with a password for a new one; the session is in the cookie',
  body: {
    token: LinkToken,
    name: optional(PersonName),
    password: optional(Password),
    organizationName: optional(OrganizationName),
  },
  response: AccountSession,
  errors: ['not_found', 'already_member', 'invalid_credentials'],
});

export const accountsSignUp = operation('accounts.signUp', 'POST /v1/sign-up', {
  ...anyone,
  summary: 'Send a stranger a link to make an account; only where CHAT_SIGN_UP is open',
  body: { email: Email },
  statuses: [202],
  response: open({}),
});
