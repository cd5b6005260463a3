import Type from 'typebox';
import { limits } from '../limits.ts';
import {
  Account,
  AccountSession,
  Passkey,
  RecoveryCodes,
  SessionEntry,
  WebAuthnJson,
} from '../schemas/accounts.ts';
import { IdParam, line, open, optional, Timestamp } from '../schemas/common.ts';
import { operation } from './define.ts';

/** DECISIONS, Control plane: signing in, and operations on one's own account. */

export const Email = Type.String({ minLength: 3, maxLength: 254, pattern: '^[^\\s@]+@[^\\s@]+$' });
/** A password as typed. The rules for new passwords are checked elsewhere, so that the error can say what is wrong. */
export const Password = Type.String({ minLength: 1, maxLength: 1_000 });
const Code = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Of the authenticator app, or a recovery code',
});
export const PersonName = line({ maxLength: limits.userNameCharacters });
export const LinkToken = Type.String({ minLength: 1, maxLength: 200 });

const anyone = { callers: ['anyone'], scope: 'account', tag: 'Session' } as const;
const signedIn = { callers: ['dashboard'], scope: 'account', tag: 'Session' } as const;
const own = { callers: ['dashboard'], scope: 'account', tag: 'Account' } as const;
/** For operations that would let a thief of the cookie stay: allowed only shortly after the password was given. */
const ownRecent = { ...own, recent: true } as const;

export const sessionCreate = operation('session.create', 'POST /v1/session', {
  ...anyone,
  summary: 'Sign in; the session is in the cookie',
  body: { email: Email, password: Password, code: optional(Code) },
  response: AccountSession,
  errors: ['invalid_credentials', 'second_factor_required'],
});

export const sessionPasskeyOptions = operation('session.passkeyOptions', 'POST /v1/session/passkey/options', {
  ...anyone,
  summary: 'What navigator.credentials.get needs',
  response: WebAuthnJson,
});

export const sessionCreateWithPasskey = operation('session.createWithPasskey', 'POST /v1/session/passkey', {
  ...anyone,
  summary: 'Sign in with a passkey instead of a password; the session is in the cookie',
  body: { response: WebAuthnJson },
  response: AccountSession,
  errors: ['invalid_credentials'],
});

export const sessionGet = operation('session.get', 'GET /v1/session', {
  ...signedIn,
  summary: 'Who is signed in, with organizations and environments',
  response: AccountSession,
});

export const sessionReauth = operation('session.reauth', 'POST /v1/session/reauth', {
  ...signedIn,
  summary: 'Give the password again, for what needs a recent sign-in; the cookie is renewed',
  body: { password: Password, code: optional(Code) },
  response: AccountSession,
  errors: ['invalid_credentials', 'second_factor_required'],
});

export const sessionDelete = operation('session.delete', 'DELETE /v1/session', {
  ...signedIn,
  summary: 'Sign out',
});

export const passwordForgot = operation('password.forgot', 'POST /v1/password/forgot', {
  ...anyone,
  summary: 'Send a link for a new password, where the address has an account and a mail server is set',
  body: { email: Email },
  statuses: [202],
  response: open({ mail: Type.Boolean({ description: 'false: there is no mail server; ask the operator' }) }),
});

export const passwordReset = operation('password.reset', 'POST /v1/password/reset', {
  ...anyone,
  summary: 'Set a new password with the token of the link; all sessions end',
  body: { token: LinkToken, password: Password },
  errors: ['not_found'],
});

export const accountGet = operation('account.get', 'GET /v1/account', {
  ...own,
  summary: 'The account that is signed in',
  response: Account,
});

export const accountUpdate = operation('account.update', 'PATCH /v1/account', {
  ...own,
  summary: 'Change one’s name',
  body: { name: PersonName },
  response: Account,
});

export const accountChangePassword = operation('account.changePassword', 'POST /v1/account/password', {
  ...own,
  summary: 'Change the password; all other sessions end and the cookie is renewed',
  body: { password: Password, newPassword: Password, code: optional(Code) },
  response: AccountSession,
  errors: ['invalid_credentials', 'second_factor_required'],
});

export const accountBeginTotp = operation('account.beginTotp', 'POST /v1/account/totp', {
  ...ownRecent,
  summary: 'Make a secret for an authenticator app; it counts once a code of it was given',
  response: open({ secret: Type.String(), uri: Type.String() }),
});

export const accountConfirmTotp = operation('account.confirmTotp', 'POST /v1/account/totp/confirm', {
  ...ownRecent,
  summary: 'Turn one-time codes on by giving one; the first second factor brings recovery codes',
  body: { code: Code },
  response: open({ recoveryCodes: RecoveryCodes }),
});

export const accountRemoveTotp = operation('account.removeTotp', 'DELETE /v1/account/totp', {
  ...ownRecent,
  summary: 'Turn one-time codes off',
  errors: ['not_found'],
});

export const accountRenewRecoveryCodes = operation(
  'account.renewRecoveryCodes',
  'POST /v1/account/recovery-codes',
  {
    ...ownRecent,
    summary: 'Make new recovery codes; those before count no more',
    response: open({ recoveryCodes: Type.Array(Type.String()) }),
  },
);

export const accountListPasskeys = operation('account.listPasskeys', 'GET /v1/account/passkeys', {
  ...own,
  summary: 'List one’s passkeys, oldest first',
  response: open({ data: Type.Array(Passkey) }),
});

export const accountPasskeyOptions = operation(
  'account.passkeyOptions',
  'POST /v1/account/passkeys/options',
  { ...ownRecent, summary: 'What navigator.credentials.create needs', response: WebAuthnJson },
);

export const accountAddPasskey = operation('account.addPasskey', 'POST /v1/account/passkeys', {
  ...ownRecent,
  summary: 'Add a passkey; the first second factor brings recovery codes',
  body: {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    response: WebAuthnJson,
  },
  statuses: [201],
  response: open({ passkey: Passkey, recoveryCodes: RecoveryCodes }),
});

export const accountRemovePasskey = operation(
  'account.removePasskey',
  'DELETE /v1/account/passkeys/{passkeyId}',
  { ...ownRecent, summary: 'Remove a passkey', params: { passkeyId: IdParam }, errors: ['not_found'] },
);

export const accountListSessions = operation('account.listSessions', 'GET /v1/account/sessions', {
  ...own,
  summary: 'Where one is signed in, last used first',
  response: open({ data: Type.Array(SessionEntry) }),
});

export const accountEndSession = operation('account.endSession', 'DELETE /v1/account/sessions/{sessionId}', {
  ...ownRecent,
  summary: 'End one of one’s sessions',
  params: { sessionId: IdParam },
  errors: ['not_found'],
});

export const accountEndOtherSessions = operation('account.endOtherSessions', 'DELETE /v1/account/sessions', {
  ...ownRecent,
  summary: 'End all of one’s sessions but this one',
});

const operator = { callers: ['operator'], scope: 'organizations', tag: 'Accounts' } as const;
const byEmail = { email: Email };

export const accountsReset = operation('accounts.reset', 'POST /v1/accounts/{email}/reset', {
  ...operator,
  summary: 'Make a link for a new password, to be passed on by hand; it works once, for an hour',
  params: byEmail,
  response: open({ link: Type.String(), expiresAt: Timestamp }),
  errors: ['not_found'],
});

export const accountsEndSessions = operation('accounts.endSessions', 'DELETE /v1/accounts/{email}/sessions', {
  ...operator,
  summary: 'End all sessions of an account',
  params: byEmail,
  errors: ['not_found'],
});

export const accountsRemoveSecondFactor = operation(
  'accounts.removeSecondFactor',
  'DELETE /v1/accounts/{email}/second-factor',
  {
    ...operator,
    summary:
      'Remove the one-time codes, passkeys and recovery codes of an account that lost them all, and end its sessions',
    params: byEmail,
    errors: ['not_found'],
  },
);
