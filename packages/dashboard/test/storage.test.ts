import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { startCustomerPostgres } from '../../server/test/history/servers.ts';
import { openStorage } from '../../server/test/history/world.ts';
import type { StorageWorld } from '../../server/test/history/world.ts';
import { account, accountKey, startAzurite } from '../../server/test/storage/azurite.ts';
import { serverApi } from '../../server/test/support/api.ts';
import { setUp, use, useService } from '../../server/test/support/use.ts';
import { openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';

/** Where a production environment keeps its history and files, changed by hand from its page. */
describe('the storage page', () => {
  const { service, db } = useService();
  const customer = use(startCustomerPostgres, (c) => c.stop());
  const azurite = use(startAzurite, (a) => a.stop());
  const browser = useBrowser();
  let watched: Watched;
  let storage: StorageWorld;
  setUp(async () => {
    storage = await openStorage(service, db, 'env_prod');
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
    await watched.page.goto(`${service.url}/dashboard/env_prod/storage`);
  });
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const dialog = (page: Page) => page.getByRole('dialog');
  const slot = (page: Page, name: string) => page.getByRole('region', { name: `Slot ${name}`, exact: true });
  /** Types the environment's name, without which nothing can be pressed. */
  const confirmed = async (page: Page, name: string) => {
    const press = dialog(page).getByRole('button', { name, exact: true });
    assert.ok(await press.isDisabled());
    await dialog(page).getByLabel('to confirm').fill('production');
    await press.click();
    await dialog(page).waitFor({ state: 'detached' });
  };

  it('a slot is set and fails its test; tables are made, tested, used; another slot is promoted; and back', async () => {
    const server = serverApi(service.url, 'prod');
    const { body: conversation } = await server('POST', '/v1/conversations', {
      type: 'direct',
      members: ['ann', 'ben'],
    });
    const text = 'kept by the customer';
    await server('POST', `/v1/conversations/${conversation.id}/messages`, { senderId: 'ann', text });
    const { page, problems } = watched;

    const adminUrl = await customer.createDatabase();
    const setB = async (url: string, label: 'Set' | 'Replace') => {
      await slot(page, 'b').getByRole('button', { name: 'Set', exact: true }).click();
      await dialog(page).getByRole('textbox', { name: 'URL', exact: true }).fill(url);
      const press = dialog(page).getByRole('button', { name: label, exact: true });
      if (label === 'Replace') {
        assert.ok(await press.isDisabled(), 'in production the name is typed first');
        await dialog(page).getByLabel('to confirm').fill('production');
      }
      await press.click();
      await button(page, 'Done').click();
      await slot(page, 'b').getByRole('button', { name: 'Test' }).click();
    };
    // Without TLS nothing is sent there; the page says what to add to the URL.
    const { host } = new URL(adminUrl);
    const stranger = `postgresql://nobody:secret@${host}/postgres`;
    await setB(stranger, 'Set');
    const failed = slot(page, 'b').getByRole('status').filter({ hasText: 'It does not work yet' });
    await failed.getByText('sslmode=disable').waitFor();
    await slot(page, 'b').getByText('***').first().waitFor();
    assert.equal(await page.getByText('secret@').count(), 0, 'the password is not shown again');
    // With it the user and the password are tried, and the page says that they are wrong.
    await setB(`${stranger}?sslmode=disable`, 'Replace');
    await failed.getByText('refused the user or the password').waitFor();

    await page.getByLabel('with an admin’s URL').fill(adminUrl);
    await button(page, 'Create the tables').click();
    await slot(page, 'a').getByText('postgres', { exact: true }).waitFor();
    await slot(page, 'a').getByRole('button', { name: 'Test' }).click();
    await page.getByText('It works: postgres').waitFor();

    await page.getByLabel('in your own database').check();
    await button(page, 'Apply').click();
    await confirmed(page, 'Apply');
    await slot(page, 'a').getByText('in use', { exact: true }).waitFor();
    await storage.settled();
    await page.getByText('healthy').waitFor();

    // The same database under other credentials: nothing needs to be copied.
    await setB(adminUrl, 'Replace');
    await slot(page, 'b').getByText('It works: postgres').waitFor();
    await slot(page, 'b').getByRole('button', { name: 'Promote' }).click();
    await confirmed(page, 'Promote');
    await slot(page, 'b').getByText('in use', { exact: true }).waitFor();
    await storage.settled();

    await page.getByLabel('with this service', { exact: true }).check();
    await button(page, 'Apply').click();
    await confirmed(page, 'Apply');
    await page.getByText('history stays with this service').waitFor();
    await storage.settled();
    assert.equal((await storage.record()).mode, 'managed');
    const { body } = await server('GET', `/v1/conversations/${conversation.id}/messages`);
    assert.deepEqual(
      body.data.map((message: { text: string }) => message.text),
      [text],
    );
    assert.deepEqual(problems, []);
  });

  it('files go to a storage of one’s own once it was tested, and back', async () => {
    const { page, problems } = watched;
    const form = page.getByRole('form', { name: 'Keep files in your own storage' });
    await button(page, 'Use your own storage').click();
    await form.getByLabel('Your own storage').selectOption('azure');
    await form.getByRole('textbox', { name: 'Account', exact: true }).fill(account);
    await form.getByLabel('Account key').first().fill(accountKey);
    await form.getByLabel('Container').fill('media');
    await form.getByLabel('Endpoint').fill(azurite.endpoint);
    await page.getByLabel('Origin of your web app').fill('https://app.example.com');
    await button(page, 'Test and use it').click();
    await page.getByText('its CORS rules do not allow it').first().waitFor();
    assert.equal((await storage.record()).media.provider, 'managed', 'what fails its test is not used');
    await page.getByLabel('Origin of your web app').fill('');
    await button(page, 'Test and use it').click();
    await page.getByText('The test passed').first().waitFor();
    assert.equal((await storage.record()).media.provider, 'azure');
    await button(page, 'Keep files with this service again').click();
    await confirmed(page, 'Keep files with this service again');
    await button(page, 'Keep files with this service again').waitFor({ state: 'detached' });
    assert.equal((await storage.record()).media.provider, 'managed');
    assert.deepEqual(problems, []);
  });
});
