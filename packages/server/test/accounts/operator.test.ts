import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { setUp, useService } from '../support/use.ts';
import { createDashboard, join, owner as ownerIs, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';
import { totpApp } from './totp-app.ts';

/** `npm run parley -- account …`: for people who cannot help themselves. */

const { service } = useService();
let owner: Dashboard;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
});
const actions = async () =>
  (await owner.api('GET', '/v1/audit?limit=5')).body.data.map(
    (e: { action: string }) => e.action,
  ) as string[];

test('account reset: a link that sets a new password, once; without a mail server the page says so', async () => {
  const me = await join(service.url, owner, organizationId, 'viewer');
  assert.deepEqual((await me.api('POST', '/v1/password/forgot', { email: me.email })).body, { mail: false });
  const { link, expiresAt } = await parley(service, 'account', 'reset', me.email.toUpperCase());
  assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 3_600_000) < 60_000);
  assert.match(link, /\/dashboard\/reset#[\w-]{43}$/);
  const body = { token: new URL(link).hash.slice(1), password: 'elf Kühe im Regen' };
  const browser = createDashboard(service.url);
  assert.equal((await browser.api('POST', '/v1/password/reset', body)).status, 204);
  assertError(await browser.api('POST', '/v1/password/reset', body), 404, 'not_found');
  await browser.signIn(me.email, 'elf Kühe im Regen');
  assert.ok((await actions()).includes('accounts.reset'));
  await assert.rejects(parley(service, 'account', 'reset', 'nobody@example.com'), /no account/);
});

test('account reset: a changed password makes the link invalid', async () => {
  const me = await join(service.url, owner, organizationId, 'viewer');
  const { link } = await parley(service, 'account', 'reset', me.email);
  const change = { password: me.password, newPassword: 'elf Kühe im Regen' };
  assert.equal((await me.api('POST', '/v1/account/password', change)).status, 200);
  const body = { token: new URL(link).hash.slice(1), password: 'zwölf Kühe im Regen' };
  assertError(await me.api('POST', '/v1/password/reset', body), 404, 'not_found');
});

test('account sign-out ends every session (ASVS 7.4.5)', async () => {
  const me = await join(service.url, owner, organizationId, 'viewer');
  await parley(service, 'account', 'sign-out', me.email);
  assertError(await me.api('GET', '/v1/session'), 401, 'token_invalid');
  assert.equal((await owner.api('GET', '/v1/session')).status, 200);
  assert.ok((await actions()).includes('accounts.endSessions'));
});

test('account drop-second-factor: for who lost codes, passkeys and recovery codes', async () => {
  const me = await join(service.url, owner, organizationId, 'viewer');
  const code = totpApp((await me.api('POST', '/v1/account/totp')).body.uri);
  assert.equal((await me.api('POST', '/v1/account/totp/confirm', { code: code() })).status, 200);
  const browser = createDashboard(service.url);
  assertError(
    await browser.api('POST', '/v1/session', { email: me.email, password: me.password }),
    401,
    'second_factor_required',
  );
  await parley(service, 'account', 'drop-second-factor', me.email);
  await browser.signIn(me.email, me.password);
  assertError(await me.api('GET', '/v1/session'), 401, 'token_invalid');
  assert.ok((await actions()).includes('accounts.removeSecondFactor'));
});

test('none of it has an endpoint', async () => {
  for (const [method, path] of [
    ['POST', `/v1/accounts/${ownerIs.email}/reset`],
    ['DELETE', `/v1/accounts/${ownerIs.email}/sessions`],
    ['DELETE', `/v1/accounts/${ownerIs.email}/second-factor`],
  ] as const)
    assertError(await owner.api(method, path), 404, 'not_found');
});
