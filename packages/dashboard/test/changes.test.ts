import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { join, signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { serverApi } from '../../server/test/support/api.ts';
import { environments } from '../../server/test/support/service.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { loaded, openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';

/** What can be changed: with a click, with the name of a production environment, or not at all. */
describe('changes', () => {
  const { service, db } = useService();
  const browser = useBrowser();
  let watched: Watched;
  setUp(async () => {
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
  });
  const go = async (path: string): Promise<Page> => {
    await watched.page.goto(`${service.url}/dashboard${path}`);
    return watched.page;
  };
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const dialog = (page: Page) => page.getByRole('dialog');

  it('in production a key is revoked only after the name was typed', async () => {
    const page = await go('/env_prod/keys');
    await button(page, 'Create a key').click();
    await dialog(page).getByLabel('Name').fill('checkout');
    await dialog(page).getByRole('button', { name: 'Create the key' }).click();
    const key = await dialog(page).getByLabel('Shown once').innerText();
    assert.match(key, /^sk_live_/);
    const asKey = async () =>
      (await fetch(`${service.url}/v1/users`, { headers: { authorization: `Bearer ${key}` } })).status;
    assert.equal(await asKey(), 200);
    await button(page, 'Done').click();

    await page.getByRole('row', { name: 'checkout' }).getByRole('button', { name: 'Revoke' }).click();
    const confirm = dialog(page).getByRole('button', { name: 'Revoke' });
    assert.ok(await confirm.isDisabled());
    await dialog(page).getByLabel('to confirm').fill('producti');
    assert.ok(await confirm.isDisabled());
    assert.equal(await asKey(), 200);
    await dialog(page).getByLabel('to confirm').fill('production');
    await confirm.click();
    await page.getByRole('row', { name: 'checkout' }).getByText('revoked').waitFor();
    assert.equal(await asKey(), 401);
  });

  it('in production push credentials go, and an endpoint is disabled, only after the name was typed', async () => {
    const owner = (await signedInOwner(service.url)).in('env_prod');
    const set = await owner('PUT', '/v1/push/credentials/expo', { credentials: { accessToken: 'x' } });
    assert.equal(set.status, 200, JSON.stringify(set.body));
    const { body: endpoint } = await owner('POST', '/v1/webhooks', {
      url: 'https://x.example/hook',
      events: ['message.created'],
    });
    for (const [path, name, gone] of [
      ['push', 'Remove', 'No provider is set up'],
      [`webhooks/${endpoint.id}`, 'Disable', 'Enable'],
    ] as const) {
      const page = await go(`/env_prod/${path}`);
      await button(page, name).click();
      const confirm = dialog(page).getByRole('button', { name, exact: true });
      assert.ok(await confirm.isDisabled());
      await dialog(page).getByLabel('to confirm').fill('production');
      await confirm.click();
      await page.getByText(gone, { exact: true }).waitFor();
    }
  });

  it('in production push credentials are replaced only after the name was typed; the first ones need no name', async () => {
    const page = await go('/env_prod/push');
    const json = page.getByLabel('Credentials as JSON');
    const choose = (provider: string) => page.getByLabel('Provider').selectOption(provider);
    await choose('expo');
    await json.fill('{ "accessToken": "first" }');
    await button(page, 'Set').click();
    await page.getByText('The credentials are set.').waitFor();
    await json.fill('{ "accessToken": "second" }');
    const sealed = () =>
      db.query<{ kept: Buffer }>(`SELECT sealed AS kept FROM push_credentials WHERE provider = 'expo'`);
    const first = await sealed();
    assert.equal(first.length, 1);
    assert.ok(await button(page, 'Replace').isDisabled());
    await page.getByLabel('to confirm').fill('production');
    assert.deepEqual(await sealed(), first);
    await button(page, 'Replace').click();
    await page.waitForFunction(() => document.querySelector('textarea')!.value === '');
    assert.notDeepEqual(await sealed(), first);
    await choose('fcm');
    await button(page, 'Set').waitFor();
    assert.equal(await page.getByLabel('to confirm').count(), 0);
  });

  it('a user is deactivated and taken back, its socket closed, and erased with the name of production', async () => {
    const server = serverApi(service.url, 'prod');
    await server('PUT', '/v1/users/zoe', { name: 'Zoe' });
    const page = await go('/env_prod/users/zoe');
    const confirmed = async (name: string) => {
      await button(page, name).first().click();
      await dialog(page).getByLabel('to confirm').fill('production');
      await dialog(page).getByRole('button', { name, exact: true }).click();
      await dialog(page).waitFor({ state: 'detached' });
    };
    await confirmed('Deactivate');
    await page.getByText('tokens are refused and sockets are closed').waitFor();
    await button(page, 'Reactivate').click();
    await button(page, 'Deactivate').waitFor();
    await confirmed('Erase');
    await page.waitForURL('**/env_prod/users');
    assert.equal((await server('GET', '/v1/users/zoe')).status, 404);
  });

  it('the before-send hook is set, tested and removed; its secret is shown once', async () => {
    const page = await go('/env_other/webhooks');
    await button(page, 'Set up the hook').click();
    await dialog(page).getByLabel('URL').fill('http://127.0.0.1:9/hook');
    await dialog(page).getByLabel('Without an answer').selectOption('Refuse it; the app tries again');
    await button(page, 'Save the hook').click();
    assert.match(await dialog(page).getByLabel('Shown once').innerText(), /^whsec_/);
    await button(page, 'Done').click();
    await page.getByText('refused, and the app tries again').waitFor();
    await button(page, 'Test the hook').click();
    await page.getByText('The test failed').waitFor();
    await button(page, 'Edit the hook').click();
    assert.equal(await dialog(page).getByLabel('URL').inputValue(), 'http://127.0.0.1:9/hook');
    await dialog(page).getByLabel('Also call the hook for edits').uncheck();
    await button(page, 'Save the hook').click();
    await page.getByText('Called for messages, with 1000 ms to answer').waitFor();
    await button(page, 'Remove').click();
    await dialog(page).getByRole('button', { name: 'Remove' }).click();
    await button(page, 'Set up the hook').waitFor();
    assert.equal((await serverApi(service.url, 'other')('GET', '/v1/hooks/before-send')).status, 404);
  });

  it('an endpoint is added, tested, rotated, disabled, and its failed deliveries are replayed', async () => {
    const page = await go('/env_dev/webhooks');
    await button(page, 'Add an endpoint').first().click();
    await dialog(page).getByLabel('URL').fill('http://127.0.0.1:9/hook');
    await button(page, 'Add the endpoint').click();
    assert.match(await dialog(page).getByLabel('Shown once').innerText(), /^whsec_/);
    await button(page, 'Done').click();
    await page.getByRole('link', { name: 'http://127.0.0.1:9/hook' }).click();
    await button(page, 'Send a test').click();
    await page.getByText('The test failed').waitFor();
    await button(page, 'Rotate the secret').click();
    await dialog(page).getByRole('button', { name: 'Rotate the secret' }).click();
    // The one that asked may still be closing.
    const secret = dialog(page).filter({ hasText: 'This is shown once' });
    // What is shown once stays until it is kept.
    await secret.waitFor();
    await page.keyboard.press('Escape');
    await secret.getByText('Have you saved it?').waitFor();
    await secret.getByRole('button', { name: 'Done' }).click();
    await secret.waitFor({ state: 'detached' });
    await button(page, 'Replay failures').click();
    await dialog(page).getByLabel('Since').selectOption('a day ago');
    await dialog(page).getByRole('button', { name: 'Replay failures' }).click();
    await page.getByText('on their way again').waitFor();
    await button(page, 'Edit').click();
    await dialog(page).getByLabel('URL').fill('http://127.0.0.1:9/other');
    await dialog(page).getByLabel('message.deleted').check();
    await dialog(page).getByRole('button', { name: 'Save' }).click();
    await page.getByText('message.created, message.deleted').waitFor();
    await page.getByText('http://127.0.0.1:9/other').waitFor();
    await button(page, 'Disable').click();
    await dialog(page).getByRole('button', { name: 'Disable' }).click();
    await page.getByText('disabled', { exact: true }).waitFor();
  });

  it('somebody is invited by link; an environment is made, renamed and suspended', async () => {
    const page = await go('/env_dev/team');
    await button(page, 'Invite a person').click();
    await dialog(page).getByLabel('E-mail').fill('new@example.com');
    await dialog(page).getByRole('button', { name: 'Invite', exact: true }).click();
    assert.match(await dialog(page).getByLabel('Shown once').innerText(), /\/dashboard\/invitation#/);
    await button(page, 'Done').click();
    await page.getByText('new@example.com as developer').waitFor();
    await button(page, 'Withdraw').click();
    await page.getByText('No open invitations').waitFor();
    await page.getByLabel('Name of the organization').fill('Four & Sons');
    await button(page, 'Rename').click();
    await page.getByRole('heading', { name: 'Team of Four & Sons' }).waitFor();

    await go('/new-environment');
    await page.getByRole('textbox', { name: 'Name' }).fill('Staging');
    await button(page, 'Create').click();
    await button(page, 'I have saved it. Continue').click();
    await page.getByRole('button', { name: 'Environment: Staging' }).waitFor();
    // Whoever has just seen a key is not told to make one.
    await page.getByText('The code below contains the key that you have just seen.').waitFor();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Stage');
    await button(page, 'Save').click();
    await page.getByText('Saved.').waitFor();
    await button(page, 'Suspend the environment').click();
    await dialog(page).getByRole('button', { name: 'Suspend the environment' }).click();
    await page.getByText('suspended').first().waitFor();
  });

  it('dashboard#dev-warning: every page of an environment with unsigned tokens says that anybody can be anybody there', async () => {
    const note = (page: Page) => page.getByText('Anybody who can reach this service can act as any user');
    await db.query(`UPDATE environments SET local = true WHERE id = 'env_other'`);
    for (const path of ['/env_dev', '/env_dev/settings']) await note(await go(path)).waitFor();
    for (const path of ['/env_prod/settings', '/env_other/settings']) {
      const page = await go(path);
      await page.getByRole('heading', { name: 'Settings' }).waitFor();
      assert.equal(await note(page).count(), 0, path);
    }
  });

  it('an owner deletes an organization after its name was typed', async () => {
    await db.query(`INSERT INTO organizations (id, name) VALUES ('org_old', 'Old & Sons')`);
    await db.query(
      `INSERT INTO organization_accounts (org, account, role) SELECT o.no, a.no, 'owner' FROM organizations o, accounts a
       WHERE o.id = 'org_old' AND a.email = 'owner@example.com'`,
    );
    await db.query(
      `INSERT INTO environments (id, org, name, kind, plan, settings)
       SELECT 'env_old', no, 'Old', 'production', 'free', '{}' FROM organizations WHERE id = 'org_old'`,
    );
    const page = await go('/env_old/team');
    await button(page, 'Delete the organization').click();
    const confirm = dialog(page).getByRole('button', { name: 'Delete the organization' });
    assert.ok(await confirm.isDisabled());
    await dialog(page).getByLabel('to confirm').fill('Old & Sons');
    await confirm.click();
    await page.waitForURL((url) => !url.pathname.includes('env_old'));
    const [row] = await db.query<{ status: string }>(`SELECT status FROM environments WHERE id = 'env_old'`);
    assert.equal(row!.status, 'suspended');
  });

  it('a viewer is offered no change and no content', async () => {
    const owner = await signedInOwner(service.url);
    const { body } = await owner.api('GET', '/v1/session');
    const viewer = await join(service.url, owner, body.organizations[0].id as string, 'viewer');
    const server = serverApi(service.url);
    const { body: conversation } = await server('POST', '/v1/conversations', {
      type: 'direct',
      members: ['a', 'b'],
    });
    const { page } = await openPage(browser, service.url);
    await signIn(page, service.url, viewer);
    const offered: Record<string, string[]> = {};
    for (const path of [
      'keys',
      'users/a',
      `conversations/${conversation.id}`,
      'webhooks',
      'push',
      'team',
      'settings',
    ]) {
      await page.goto(`${service.url}/dashboard/${environments.dev.id}/${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await loaded(page);
      const names = await page.getByRole('main').getByRole('button').allInnerTexts();
      offered[path] = names.filter((name) => !name.startsWith('Copy'));
    }
    assert.deepEqual(
      new Set(Object.values(offered).flat()),
      new Set(['Leave the organization']),
      JSON.stringify(offered),
    );
    await page.goto(`${service.url}/dashboard/env_dev/conversations/${conversation.id}`);
    await page.getByRole('tab', { name: 'Members' }).waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Messages' }).count(), 0);
  });

  it('works with the keyboard alone: the first stop skips the menu, dialogs hold the focus and give it back', async () => {
    const page = await go('/env_dev/keys');
    await button(page, 'Create a key').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Create a key');
    await page.keyboard.press('Enter');
    await dialog(page).getByLabel('Name').waitFor();
    await page.keyboard.type('by keyboard');
    assert.equal(await dialog(page).getByLabel('Name').inputValue(), 'by keyboard');
    for (let i = 0; i < 6; i++) await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement?.closest('[role=dialog]') !== null));
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
    await page.waitForFunction(() => document.activeElement?.textContent === 'Create a key');
    assert.deepEqual(watched.problems, []);
  });
});
