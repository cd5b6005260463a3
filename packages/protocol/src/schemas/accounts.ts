import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { accountRoles } from '../roles.ts';
import type { AccountRole } from '../roles.ts';
import { nullable, open, optional, Timestamp } from './common.ts';
import { Environment } from './environments.ts';

/** dashboard#session: people, their sessions and organizations, as the service sends them. */

const id = (prefix: string) => Type.String({ pattern: `^${prefix}` });

export const OrganizationRole = Type.Unsafe<AccountRole>({ type: 'string', enum: [...accountRoles] });

const organization = { id: id('org_'), name: Type.String(), role: OrganizationRole };

export const AccountSession = open(
  {
    account: open({ id: id('acc_'), email: Type.String(), name: Type.String(), twoFactor: Type.Boolean() }),
    signedInAt: Timestamp,
    organizations: Type.Array(open({ ...organization, environments: Type.Array(Environment) })),
  },
  'AccountSession',
);
export type AccountSession = Static<typeof AccountSession>;

export const Account = open(
  {
    id: id('acc_'),
    email: Type.String(),
    name: Type.String(),
    createdAt: Timestamp,
    twoFactor: Type.Boolean({ description: 'A code or a passkey is asked for besides the password' }),
    totp: Type.Boolean({ description: 'One-time codes are on' }),
    passkeys: Type.Integer(),
    recoveryCodes: Type.Integer({ description: 'How many are left' }),
  },
  'Account',
);
export type Account = Static<typeof Account>;

export const SessionEntry = open(
  {
    id: id('sess_'),
    createdAt: Timestamp,
    lastUsedAt: Timestamp,
    address: Type.String(),
    userAgent: Type.String(),
    current: Type.Boolean({ description: 'The one that asks' }),
  },
  'SessionEntry',
);

export const Passkey = open(
  { id: id('pk_'), name: Type.String(), createdAt: Timestamp, lastUsedAt: nullable(Timestamp) },
  'Passkey',
);

/** Shown only once; `null` if the account already has some. */
export const RecoveryCodes = nullable(Type.Array(Type.String()));

export const Organization = open({ ...organization, createdAt: Timestamp }, 'Organization');

export const OrganizationMember = open(
  {
    accountId: id('acc_'),
    email: Type.String(),
    name: Type.String(),
    role: OrganizationRole,
    joinedAt: Timestamp,
    twoFactor: Type.Boolean(),
  },
  'OrganizationMember',
);
export type OrganizationMember = Static<typeof OrganizationMember>;

const invitation = {
  id: id('inv_'),
  email: Type.String(),
  role: OrganizationRole,
  invitedBy: nullable(Type.String()),
  createdAt: Timestamp,
  expiresAt: Timestamp,
};
export const Invitation = open(invitation, 'Invitation');
export type Invitation = Static<typeof Invitation>;
export const InvitationWithLink = open(
  {
    ...invitation,
    link: optional(
      Type.String({ description: 'Where no mail server is set: to be passed on by hand; shown this once' }),
    ),
  },
  'InvitationWithLink',
);

/** WebAuthn's own JSON, as `PublicKeyCredential.parse…OptionsFromJSON()` takes it and `toJSON()` makes it. */
export const WebAuthnJson = Type.Unsafe<object>({ type: 'object' });
