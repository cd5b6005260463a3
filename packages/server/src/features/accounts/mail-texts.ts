import type { Mail } from '../../platform/mail/mailer.ts';

/** The texts of mails. In links the token stands after the #, a part that browsers do not send to servers. */

const lines = (...text: string[]): string => text.join('\n');

export const invitationLink = (origin: string, token: string): string =>
  `${origin}/dashboard/invitation#${token}`;
export const resetLink = (origin: string, token: string): string => `${origin}/dashboard/reset#${token}`;

/** A name in one line, also one that was stored when line breaks were not refused yet. */
const inLine = (name: string): string => name.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ');

export const invitationMail = (email: string, organization: string, by: string, link: string): Mail => ({
  to: [email],
  subject: `You are invited to ${inLine(organization)} on Parley`,
  text: lines(
    `${by} invites you to the organization ${inLine(organization)} on Parley.`,
    '',
    link,
    '',
    'The link works once, for 7 days. If you do not know what this is about, do nothing.',
  ),
});

export const signUpMail = (email: string, link: string): Mail => ({
  to: [email],
  subject: 'Your account on Parley',
  text: lines(
    'Follow this link to make your account on Parley:',
    '',
    link,
    '',
    'It works once, for 7 days. If you did not ask for it, do nothing.',
  ),
});

export const resetMail = (email: string, link: string): Mail => ({
  to: [email],
  subject: 'Your new password for Parley',
  text: lines(
    'Follow this link to set a new password for Parley:',
    '',
    link,
    '',
    'It works once, for an hour. If you did not ask for it, do nothing: your password stays as it is.',
  ),
});

export const passwordMail = (email: string): Mail => ({
  to: [email],
  subject: 'Your password for Parley was changed',
  text: lines(
    'The password of your account was changed, and all other sessions were ended.',
    '',
    'If it was not you, set a new one at once with “Forgot password?”, and tell the owner of your organization.',
  ),
});
