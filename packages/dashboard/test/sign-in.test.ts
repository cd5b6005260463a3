import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { createDashboard, join, signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { totpApp } from '../../server/test/accounts/totp-app.ts';
import { parley } from '../../server/test/support/cli.ts';
import { useService } from '../../server/test/support/use.ts';
import { accessibilityProblems, openPage, owner, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

/** dashboard#session: coming in, and going out. */

const accountMenu = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const problemShown = (page: Page, text: string | RegExp) =>
  page.getByRole('alert').filter({ hasText: text }).waitFor();

describe('signing in', () => {
  const { service, sql } = useService();
  const browser = useBrowser();
  // Passkeys are bound to a name, and an address is none.
  const local = (): string => service.url.replace('127.0.0.1', 'localhost');
  const newPage = async (url = service.url) => openPage(browser, url);

  it('ASVS 6.2.6, 6.2.7: with the password, which is hidden, may be shown and pasted; a wrong one is refused; back to where one was', async () => {
    const { page, problems } = await newPage();
    await page.goto(`${service.url}/dashboard/env_dev/users?limit=5`);
    const password = page.getByLabel(/^Password/);
    assert.equal(await password.getAttribute('type'), 'password');
    assert.equal(await password.getAttribute('autocomplete'), 'current-password');
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByLabel('E-mail').fill(owner.email);
    await password.fill('wrong');
    await page.getByRole('button', { name: 'Show or hide the password' }).click();
    assert.equal(await password.getAttribute('type'), 'text');
    await password.press('Enter');
    await problemShown(page, /password/i);
    await password.selectText();
    await page.keyboard.insertText(owner.password);
    await password.press('Enter');
    await page.getByRole('heading', { name: 'Users', exact: true }).waitFor();
    assert.equal(page.url(), `${service.url}/dashboard/env_dev/users?limit=5`);
    assert.deepEqual(problems, []);
  });

  it('ASVS 7.4.4: signing out is on every page, and ends the session', async () => {
    const { page, context } = await newPage();
    await signIn(page, service.url);
    const [cookie] = (await context.cookies()).filter(({ name }) => name === 'parley_session');
    assert.ok(cookie?.httpOnly && cookie.sameSite === 'Lax');
    assert.equal(await page.evaluate(() => document.cookie), '');
    await accountMenu(page, 'owner@example.com').or(accountMenu(page, 'Owner')).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const answer = await fetch(`${service.url}/v1/session`, {
      headers: { cookie: `parley_session=${cookie.value}`, 'sec-fetch-site': 'same-origin' },
    });
    assert.equal(answer.status, 401);
    await page.goto(`${service.url}/dashboard/env_dev/keys`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('a session that ends elsewhere leads to the sign-in, and from there back', async () => {
    const { page } = await newPage();
    await signIn(page, service.url);
    // A page that asks for nothing by itself.
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    const other = await signedInOwner(service.url);
    assert.equal((await other.api('DELETE', '/v1/account/sessions')).status, 204);
    await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('E-mail').fill(owner.email);
    await page.getByLabel(/^Password/).fill(owner.password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor();
  });

  it('an invited person chooses a password, sets up one-time codes and signs in with one, then with a recovery code', async () => {
    const first = await signedInOwner(service.url);
    const { body: session } = await first.api('GET', '/v1/session');
    const { body: invitation } = await first.api(
      'POST',
      `/v1/organizations/${session.organizations[0].id}/invitations`,
      { email: 'ida@example.com', role: 'developer' },
    );
    const who = { email: 'ida@example.com', password: 'vier Ziegen im Schnee' };
    const { page, problems } = await newPage();
    await page.goto(invitation.link as string);
    await page.getByText('ida@example.com joins').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByLabel('Your name').fill('Ida');
    await page.getByLabel('Choose a password').fill(who.password);
    await page.getByRole('button', { name: 'Accept' }).click();
    await accountMenu(page, 'Ida').click();
    await page.getByRole('menuitem', { name: 'Your account' }).click();

    await page.getByRole('button', { name: 'Set up one-time codes' }).click();
    await page.getByAltText('as a QR code').waitFor();
    const secret = await page.getByText('Without a camera').locator('code').innerText();
    const code = totpApp(`otpauth://totp/x?secret=${secret}`);
    await page.getByLabel(/^Code/).fill(code());
    await page.getByRole('button', { name: 'Turn on' }).click();
    const recovery = (await page.getByLabel('Recovery codes', { exact: true }).innerText()).split('\n');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('One-time codes are on.').waitFor();
    assert.deepEqual(problems, []);

    const { page: second } = await newPage();
    const begin = async () => {
      await second.goto(`${service.url}/dashboard`);
      await second.getByLabel('E-mail').fill(who.email);
      await second.getByLabel(/^Password/).fill(who.password);
      await second.getByRole('button', { name: 'Sign in', exact: true }).click();
      await second.getByLabel('Code of your authenticator app').waitFor();
    };
    await begin();
    await second.getByLabel('Code of your authenticator app').fill('000000');
    await second.getByRole('button', { name: 'Sign in', exact: true }).click();
    await second.getByRole('alert').waitFor();
    await second.getByLabel('Code of your authenticator app').fill(recovery[0]!);
    await second.getByRole('button', { name: 'Sign in', exact: true }).click();
    await accountMenu(second, 'Ida').waitFor();
  });

  it('a passkey is made, and signs in without a password', async () => {
    const dashboard = await signedInOwner(service.url);
    const { body: session } = await dashboard.api('GET', '/v1/session');
    const person = await join(service.url, dashboard, session.organizations[0].id as string, 'developer');
    const { page, context, problems } = await newPage(local());
    const debuggerSession = await context.newCDPSession(page);
    await debuggerSession.send('WebAuthn.enable');
    await debuggerSession.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await signIn(page, local(), person);
    await page.goto(`${local()}/dashboard/account`);
    await page.getByLabel('Name of a new passkey').fill('this laptop');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByLabel('Recovery codes', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('this laptop').waitFor();
    await accountMenu(page, 'developer').click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await accountMenu(page, 'developer').waitFor();
    assert.deepEqual(problems, []);
  });

  it('ASVS 7.5.1: what is sensitive asks for the password again after 15 minutes, and then goes on', async () => {
    const dashboard = await signedInOwner(service.url);
    const { body: session } = await dashboard.api('GET', '/v1/session');
    const person = await join(service.url, dashboard, session.organizations[0].id as string, 'viewer');
    const { page } = await newPage();
    await signIn(page, service.url, person);
    await sql(
      `UPDATE account_sessions s SET signed_in_at = signed_in_at - interval '16 minutes'
       FROM accounts a WHERE a.no = s.account AND a.email = $1`,
      [person.email],
    );
    await page.goto(`${service.url}/dashboard/account`);
    await page.getByRole('button', { name: 'Set up one-time codes' }).click();
    await page.getByText('Is it still you?').waitFor();
    await page
      .getByRole('dialog')
      .getByLabel(/^Password/)
      .fill(person.password);
    await page.getByRole('button', { name: 'Confirm it is you' }).click();
    await page.getByAltText('as a QR code').waitFor();
  });

  it('a forgotten password: the page says who helps, and the link of the command line sets a new one', async () => {
    const dashboard = await signedInOwner(service.url);
    const { body: session } = await dashboard.api('GET', '/v1/session');
    const person = await join(service.url, dashboard, session.organizations[0].id as string, 'viewer');
    const { page } = await newPage();
    await page.goto(`${service.url}/dashboard`);
    await page.getByRole('link', { name: 'Forgot your password?' }).click();
    await page.getByLabel('E-mail').fill(person.email);
    await page.getByRole('button', { name: 'Send a link' }).click();
    await page.getByText('account reset').waitFor();
    const { link } = await parley(service, 'account', 'reset', person.email);
    await page.goto(`${service.url}/dashboard/reset${new URL(link as string).hash}`);
    await page.getByLabel('New password').fill('sieben Gänse am Teich');
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page.getByText('The password is changed').waitFor();
    await createDashboard(service.url).signIn(person.email, 'sieben Gänse am Teich');

    await page.goto(`${service.url}/dashboard`);
    await page.getByRole('link', { name: 'sign up' }).click();
    await page.getByLabel('E-mail').fill('stranger@example.com');
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByRole('button', { name: 'Send a link' }).click();
    await page.getByRole('alert').waitFor();
  });
});
