import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import { startService } from '../support/service.ts';
import { setUp, use, useService } from '../support/use.ts';
import { dump } from '../core/tools.ts';
import { startSmtp } from '../webhooks/smtp.ts';
import { createDashboard, owner as ownerIs, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';
import { totpApp } from './totp-app.ts';

/** Where a mail server is set: forgotten passwords, invitations and sign-up by mail. */

const smtp = use(startSmtp, (s) => s.close());
const { service, db, sql } = useService({
  env: () => ({
    CHAT_SMTP_URL: smtp.url,
    CHAT_ORIGIN: 'https://chat.example.com',
    CHAT_SIGN_UP: 'open',
    CHAT_TRUST_PROXY: 'true',
    CHAT_LOG_LEVEL: 'trace',
  }),
});
let owner: Dashboard;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
});

let addresses = 0;
const from = () => ({ 'x-forwarded-for': `198.51.100.${++addresses}` });
const nobody = () => createDashboard(service.url);
/** The mail text has soft line breaks and encoded signs. */
const plain = (mail: string) => mail.replaceAll('=\n', '').replaceAll('=3D', '=').replaceAll('=23', '#');
const linkOf = (mail: string, page: string): string => {
  const [, token] =
    new RegExp(`https://chat\\.example\\.com/dashboard/${page}#([\\w-]{43})`).exec(plain(mail)) ?? [];
  assert.ok(token, mail);
  return token;
};
const mailTo = async (address: string): Promise<string> => {
  for (;;) {
    const found = smtp.mails.find((mail) => mail.includes(`To: ${address}`));
    if (found) return found;
    await smtp.next();
  }
};
const signUp = async (email: string): Promise<{ dashboard: Dashboard; password: string }> => {
  assert.equal((await nobody().api('POST', '/v1/sign-up', { email }, from())).status, 202);
  const token = linkOf(await mailTo(email), 'invitation');
  const dashboard = nobody();
  const password = 'fünf Kühe im Regen';
  const accepted = await dashboard.api('POST', '/v1/invitations/accept', {
    token,
    password,
    organizationName: 'Farm',
  });
  assert.equal(accepted.status, 200, JSON.stringify(accepted.body));
  return { dashboard, password };
};
const forgot = (email: string, headers: Record<string, string> = from()) =>
  nobody().api('POST', '/v1/password/forgot', { email }, headers);

describe('sign-up', () => {
  it('proves the address by mail, and makes an account with an organization of its own', async () => {
    const { dashboard } = await signUp('stranger@example.com');
    const { body } = await dashboard.api('GET', '/v1/session');
    assert.deepEqual(
      body.organizations.map((o: { name: string; role: string }) => [o.name, o.role]),
      [['Farm', 'owner']],
    );
  });

  it('answers alike for an address that has an account, which gets no mail', async () => {
    const known = await nobody().api('POST', '/v1/sign-up', { email: ownerIs.email }, from());
    const unknown = await nobody().api('POST', '/v1/sign-up', { email: 'unknown@example.com' }, from());
    assert.deepEqual([known.status, known.body], [unknown.status, unknown.body]);
    await mailTo('unknown@example.com');
    assert.ok(!smtp.mails.some((mail) => mail.includes(`To: ${ownerIs.email}`)));
  });
});

describe('a forgotten password', () => {
  it('is set anew with the link of the mail, once; all sessions end, and the second factor stays', async () => {
    const email = 'forgetful@example.com';
    const { dashboard, password } = await signUp(email);
    const code = totpApp((await dashboard.api('POST', '/v1/account/totp')).body.uri);
    const { recoveryCodes } = (await dashboard.api('POST', '/v1/account/totp/confirm', { code: code() }))
      .body;
    smtp.mails.length = 0;
    assert.deepEqual((await forgot(email)).body, { mail: true });
    const token = linkOf(await mailTo(email), 'reset');
    const reset = (newPassword: string) =>
      nobody().api('POST', '/v1/password/reset', { token, password: newPassword }, from());
    assertError(await reset('password1234'), 400, 'invalid_request', 'password');
    const outcomes = await Promise.all([reset('sechs Kühe im Regen'), reset('sechs Kühe im Regen')]);
    assert.deepEqual(outcomes.map((o) => o.status).sort(), [204, 404]);
    assertError(await reset('sieben Kühe im Regen'), 404, 'not_found');
    assertError(await dashboard.api('GET', '/v1/session'), 401, 'token_invalid');
    const signIn = (given: object) => nobody().api('POST', '/v1/session', { email, ...given }, from());
    assertError(await signIn({ password }), 401, 'invalid_credentials');
    assertError(await signIn({ password: 'sechs Kühe im Regen' }), 401, 'second_factor_required');
    assert.equal((await signIn({ password: 'sechs Kühe im Regen', code: recoveryCodes[0] })).status, 200);
    smtp.mails.length = 0;
    await dashboard.signIn(email, 'sechs Kühe im Regen', recoveryCodes[1]);
    const changed = await dashboard.api('POST', '/v1/account/password', {
      password: 'sechs Kühe im Regen',
      newPassword: 'acht Kühe im Regen',
      code: recoveryCodes[2],
    });
    assert.equal(changed.status, 200);
    assert.match(plain(await mailTo(email)), /was changed/, 'ASVS 6.3.6: they are told');
  });

  it('asking again makes the link before worthless; it ends after an hour', async () => {
    const email = 'twice@example.com';
    await signUp(email);
    smtp.mails.length = 0;
    await forgot(email);
    const first = linkOf(await mailTo(email), 'reset');
    smtp.mails.length = 0;
    await forgot(email);
    const second = linkOf(await mailTo(email), 'reset');
    const reset = (token: string) =>
      nobody().api('POST', '/v1/password/reset', { token, password: 'neun Kühe im Regen' }, from());
    assertError(await reset(first), 404, 'not_found');
    await sql(`UPDATE password_resets SET expires_at = now()`);
    assertError(await reset(second), 404, 'not_found');
  });

  it('answers alike for unknown addresses, and is limited per address and per account', async () => {
    const [known, unknown] = [await forgot(ownerIs.email), await forgot('nobody@example.com')];
    assert.deepEqual([known.status, known.body], [unknown.status, unknown.body]);
    for (let i = 0; i < 4; i++) await forgot('nobody@example.com');
    assertError(await forgot('nobody@example.com'), 429, 'rate_limited');
  });

  it('a link never leads to where the request says that we are', async () => {
    const email = 'poisoned@example.com';
    await signUp(email);
    smtp.mails.length = 0;
    await forgot(email, { ...from(), host: 'evil.example.com', 'x-forwarded-host': 'evil.example.com' });
    const mail = plain(await mailTo(email));
    assert.ok(!mail.includes('evil'));
    linkOf(mail, 'reset');
  });
});

it('invitations go by mail, and the inviter sees no link', async () => {
  const made = await owner.api('POST', `/v1/organizations/${organizationId}/invitations`, {
    email: 'colleague@example.com',
    role: 'viewer',
  });
  assert.equal(made.status, 201);
  assert.equal('link' in made.body, false);
  const mail = await mailTo('colleague@example.com');
  assert.match(plain(mail), /owner@example\.com invites you/);
  const browser = nobody();
  const token = linkOf(mail, 'invitation');
  assert.equal(
    (await browser.api('POST', '/v1/invitations/accept', { token, password: 'zehn Kühe im Regen' })).status,
    200,
  );
});

it('no link is in the log or in the store, and no password', async () => {
  const everything = (await dump(db)) + service.output();
  for (const mail of smtp.mails) {
    const [, token] = /#([\w-]{43})/.exec(plain(mail)) ?? [];
    if (token) assert.ok(!everything.includes(token));
  }
  assert.ok(!everything.includes('Kühe im Regen'));
});

it('CHAT_SIGN_UP=open without a mail server is refused at the start', async () => {
  await assert.rejects(startService({ env: { CHAT_SIGN_UP: 'open' } }), /needs CHAT_SMTP_URL/);
});
