import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setUp, useService } from '../../server/test/support/use.ts';
import { openPage, signIn, useBrowser } from './browser.ts';
import type { Watched } from './browser.ts';

/** Finding one's way, and doing by hand what an app does. */
describe('the explorer', () => {
  const { service } = useService();
  const browser = useBrowser();
  let watched: Watched;
  setUp(async () => {
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
  });

  it('dashboard#explorer: a user, a conversation, a message and a member are made by hand, in the audit; Back leads back', async () => {
    const { page, problems } = watched;
    const dialog = page.getByRole('dialog');
    await page.goto(`${service.url}/dashboard/env_dev/users`);
    await page.getByRole('button', { name: 'New user' }).first().click();
    await dialog.getByLabel('Id').fill('ines');
    await dialog.getByLabel('Name').fill('Ines Rocha');
    await dialog.getByRole('button', { name: 'Create the user' }).click();
    await page.getByRole('heading', { name: 'Ines Rocha', level: 1 }).waitFor();

    await page.getByRole('link', { name: 'Conversations', exact: true }).click();
    await page.getByRole('button', { name: 'New conversation' }).first().click();
    await dialog.getByLabel('group').check();
    await dialog.getByLabel('Members').fill('ines, tomas');
    await dialog.getByRole('button', { name: 'Create the conversation' }).click();
    // By the names of its people.
    await page.getByRole('heading', { name: 'Ines Rocha and tomas', level: 1 }).waitFor();
    await page.getByLabel('Add by id').fill('mei');
    await page.getByRole('button', { name: 'Add members' }).click();
    await page.getByRole('cell', { name: 'mei' }).waitFor();
    await page.getByRole('tab', { name: 'Messages' }).click();
    await page.getByLabel('Send as').selectOption('Ines Rocha');
    await page.getByRole('textbox', { name: 'Message' }).fill('The arm wobbles.');
    await page.getByRole('button', { name: 'Send the message' }).click();
    await page
      .getByRole('listitem')
      .filter({ hasText: 'Ines Rocha' })
      .getByText('The arm wobbles.')
      .waitFor();

    await page.getByRole('tab', { name: 'Rules' }).click();
    await page.getByLabel('Who writes').selectOption('Owners and moderators');
    await page.getByLabel('Who joins').selectOption('Everybody, and everybody finds it');
    await page.getByRole('button', { name: 'Save the rules' }).click();
    await page.getByText('Saved.').waitFor();
    await page.reload();
    assert.equal(await page.getByLabel('Who writes').inputValue(), 'moderators');
    assert.equal(await page.getByLabel('Who joins').inputValue(), 'open listed');

    for (let i = 0; i < 3; i++) await page.goBack();
    await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor();

    await page.keyboard.press('Control+K');
    await page.getByRole('combobox', { name: 'Find or do' }).fill('ines');
    await page.getByRole('option', { name: 'Ines Rocha', exact: false }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Ines Rocha', level: 1 }).waitFor();

    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    for (const action of [
      'users.upsert',
      'conversations.create',
      'members.add',
      'messages.send',
      'conversations.update',
    ])
      await page.getByRole('cell', { name: action, exact: true }).first().waitFor();
    assert.deepEqual(problems.splice(0), []);
  });

  it('while the service is away the page stays with a banner, which goes by itself', async () => {
    const { page, context } = watched;
    await page.goto(`${service.url}/dashboard/env_dev`);
    await page.getByText('Said and heard').waitFor();
    const banner = page.getByText('The service does not answer.');
    await context.route(/\/(v1\/|healthz)/, (route) => route.abort());
    await banner.waitFor();
    assert.ok(await page.getByRole('navigation', { name: 'Areas' }).isVisible());
    assert.ok(await page.getByText('Said and heard').isVisible(), 'what was there is still there');
    await context.unroute(/\/(v1\/|healthz)/);
    await context.unrouteAll();
    await banner.waitFor({ state: 'detached' });
  });
});
