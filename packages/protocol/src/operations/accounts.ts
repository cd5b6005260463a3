import { Type } from '../type.ts';
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
import { operation, table } from './define.ts';

/** dashboard#session: signing in, and operations on one's own account. */

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

const operator = { callers: ['operator'], scope: 'organizations', tag: 'Accounts' } as const;
const byEmail = { email: Email };

export const accountsOperations = table(
  operation('session.create', 'POST /v1/session', {
    ...anyone,
    summary: 'Sign in; the session is in the cookie',
    text: 'A wrong address and a wrong password get the same answer after the same time. If a second factor is on, a missing `code` is `401 second_factor_required`: ask for the code and send everything again.',
    body: { email: Email, password: Password, code: optional(Code) },
    response: AccountSession,
    errors: ['invalid_credentials', 'second_factor_required'],
    cost: 0,
  }),

  operation('session.passkeyOptions', 'POST /v1/session/passkey/options', {
    ...anyone,
    summary: 'Get the options for navigator.credentials.get',
    text: 'The challenge is valid for five minutes.',
    response: WebAuthnJson,
  }),

  operation('session.createWithPasskey', 'POST /v1/session/passkey', {
    ...anyone,
    summary: 'Sign in with a passkey instead of a password; the session is in the cookie',
    text: 'A passkey counts as both factors.',
    body: { response: WebAuthnJson },
    response: AccountSession,
    errors: ['invalid_credentials'],
  }),

  operation('session.get', 'GET /v1/session', {
    ...signedIn,
    summary: 'Read the signed-in account, with organizations and environments',
    text: 'The signed-in account with its organizations, for the first page of a dashboard.',
    response: AccountSession,
  }),

  operation('session.reauth', 'POST /v1/session/reauth', {
    ...signedIn,
    summary: 'Confirm the password for operations that need a recent sign-in; the cookie is renewed',
    text: 'Changes that need a sign-in of the last 15 minutes answer `403 reauth_required`; call this, then try again.',
    body: { password: Password, code: optional(Code) },
    response: AccountSession,
    errors: ['invalid_credentials', 'second_factor_required'],
    cost: 0,
  }),

  operation('session.delete', 'DELETE /v1/session', {
    ...signedIn,
    summary: 'Sign out',
    text: 'Ends the session and clears the cookie.',
  }),

  operation('password.forgot', 'POST /v1/password/forgot', {
    ...anyone,
    summary: 'Send a link for a new password, where the address has an account and a mail server is set',
    text: 'The answer is always the same, so that nobody learns which addresses have accounts.',
    body: { email: Email },
    statuses: [202],
    response: open({
      mail: Type.Boolean({ description: 'false: there is no mail server; ask the operator' }),
    }),
  }),

  operation('password.reset', 'POST /v1/password/reset', {
    ...anyone,
    summary: 'Set a new password with the token of the link; all sessions end',
    text: 'The token of the link works once, for an hour.',
    body: { token: LinkToken, password: Password },
    errors: ['not_found'],
    cost: 0,
  }),

  operation('account.get', 'GET /v1/account', {
    ...own,
    summary: 'The account that is signed in',
    text: 'The account, with the second factors that it has.',
    response: Account,
  }),

  operation('account.update', 'PATCH /v1/account', {
    ...own,
    summary: 'Change one’s name',
    text: 'The e-mail address cannot be changed.',
    body: { name: PersonName },
    response: Account,
  }),

  operation('account.changePassword', 'POST /v1/account/password', {
    ...own,
    summary: 'Change the password; all other sessions end and the cookie is renewed',
    text: 'Needs the current password, and ends all other sessions.',
    body: { password: Password, newPassword: Password, code: optional(Code) },
    response: AccountSession,
    errors: ['invalid_credentials', 'second_factor_required'],
    cost: 0,
  }),

  operation('account.beginTotp', 'POST /v1/account/totp', {
    ...ownRecent,
    summary: 'Make a secret for an authenticator app; it counts once a code of it was given',
    text: 'Show `uri` as a QR code.',
    response: open({ secret: Type.String(), uri: Type.String() }),
  }),

  operation('account.confirmTotp', 'POST /v1/account/totp/confirm', {
    ...ownRecent,
    summary: 'Turn one-time codes on by giving one; the first second factor brings recovery codes',
    text: 'The recovery codes are shown only once; each works once in place of a code.',
    body: { code: Code },
    response: open({ recoveryCodes: RecoveryCodes }),
  }),

  operation('account.removeTotp', 'DELETE /v1/account/totp', {
    ...ownRecent,
    summary: 'Turn one-time codes off',
    text: 'Passkeys are not removed.',
    errors: ['not_found'],
  }),

  operation('account.renewRecoveryCodes', 'POST /v1/account/recovery-codes', {
    ...ownRecent,
    summary: 'Create new recovery codes; earlier codes stop working',
    text: 'The new codes are shown only once; the old ones stop working.',
    response: open({ recoveryCodes: Type.Array(Type.String()) }),
  }),

  operation('account.listPasskeys', 'GET /v1/account/passkeys', {
    ...own,
    summary: 'List one’s passkeys, oldest first',
    text: 'Each passkey shows when it was last used.',
    response: open({ data: Type.Array(Passkey) }),
  }),

  operation('account.passkeyOptions', 'POST /v1/account/passkeys/options', {
    ...ownRecent,
    summary: 'Get the options for navigator.credentials.create',
    text: 'The challenge is valid for five minutes.',
    response: WebAuthnJson,
  }),

  operation('account.addPasskey', 'POST /v1/account/passkeys', {
    ...ownRecent,
    summary: 'Add a passkey; the first second factor brings recovery codes',
    text: 'Give the passkey a name that identifies its device.',
    body: {
      name: Type.String({ minLength: 1, maxLength: 100 }),
      response: WebAuthnJson,
    },
    statuses: [201],
    response: open({ passkey: Passkey, recoveryCodes: RecoveryCodes }),
  }),

  operation('account.removePasskey', 'DELETE /v1/account/passkeys/{passkeyId}', {
    ...ownRecent,
    summary: 'Remove a passkey',
    text: 'The passkey no longer signs in.',
    params: { passkeyId: IdParam },
    errors: ['not_found'],
  }),

  operation('account.listSessions', 'GET /v1/account/sessions', {
    ...own,
    summary: 'Where one is signed in, last used first',
    text: 'Each session shows address and browser, so that a stranger’s session can be noticed.',
    response: open({ data: Type.Array(SessionEntry) }),
  }),

  operation('account.endSession', 'DELETE /v1/account/sessions/{sessionId}', {
    ...ownRecent,
    summary: 'End one of one’s sessions',
    text: 'The cookie of that browser is no longer valid.',
    params: { sessionId: IdParam },
    errors: ['not_found'],
  }),

  operation('account.endOtherSessions', 'DELETE /v1/account/sessions', {
    ...ownRecent,
    summary: 'End all of one’s sessions but this one',
    text: 'Use it if you suspect somebody else; then change the password.',
  }),

  operation('accounts.reset', 'POST /v1/accounts/{email}/reset', {
    ...operator,
    summary: 'Make a link for a new password, to be passed on by hand; it works once, for an hour',
    text: 'For the operator, if no mail server can send a link.',
    params: byEmail,
    response: open({ link: Type.String(), expiresAt: Timestamp }),
    errors: ['not_found'],
  }),

  operation('accounts.endSessions', 'DELETE /v1/accounts/{email}/sessions', {
    ...operator,
    summary: 'End all sessions of an account',
    text: 'For the operator: ends all sessions of one account.',
    params: byEmail,
    errors: ['not_found'],
  }),

  operation('accounts.removeSecondFactor', 'DELETE /v1/accounts/{email}/second-factor', {
    ...operator,
    summary:
      'Remove the one-time codes, passkeys and recovery codes of an account that lost them all, and end its sessions',
    text: 'For the operator, if a person lost every second factor.',
    params: byEmail,
    errors: ['not_found'],
  }),
);
