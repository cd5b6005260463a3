import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setUp, useService } from '../../server/test/support/use.ts';
import { ready, voiceNote } from '../../server/test/uploads/files.ts';
import { openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';

/** Finding one's way, and doing by hand what an app does. */
describe('the explorer', () => {
  const { service, scene, server } = useService();
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
    await page.getByLabel('May write').selectOption('Owners and moderators');
    await page.getByLabel('May join').selectOption('Everybody, and the group is listed');
    await page.getByRole('button', { name: 'Save the rules' }).click();
    await page.getByText('Saved.').waitFor();
    await page.reload();
    assert.equal(await page.getByLabel('May write').inputValue(), 'moderators');
    assert.equal(await page.getByLabel('May join').inputValue(), 'open listed');

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

  it('dashboard#explorer: a message shows its reactions, whom it mentions, who pinned it, its poll and its voice note', async () => {
    const { page, problems } = watched;
    const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
    for (const [{ id }, name] of [
      [anna, 'Anna Sowa'],
      [ben, 'Ben Ode'],
    ] as const)
      assert.equal((await server('PUT', `/v1/users/${id}`, { name })).status, 200);
    const { id: cid } = await scene.group(anna, [ben]);
    const mentions = [{ type: 'user', userId: ben.id }, { type: 'everyone' }];
    const lunch = await scene.send(anna, cid, { text: 'Lunch?', mentions });
    const poll = {
      question: 'Where?',
      options: [{ text: 'Here' }, { text: 'There' }],
      anonymous: true,
    };
    const asked = await scene.send(anna, cid, { poll });
    await scene.send(ben, cid, {
      text: 'Listen',
      attachments: [
        await ready(ben.api, cid, { ...voiceNote, voice: { durationMs: 2_500, waveform: 'AAEC' } }),
      ],
    });
    for (const done of [
      await ben.api('PUT', `/v1/messages/${lunch.id}/reactions/%F0%9F%91%8D`, {}),
      await anna.api('PUT', `/v1/messages/${lunch.id}/reactions/%F0%9F%91%8D`, {}),
      await ben.api('PUT', `/v1/messages/${lunch.id}/reactions/:party:`, {}),
      await ben.api('PUT', `/v1/messages/${lunch.id}/pin`),
      await ben.api('PUT', `/v1/messages/${asked.id}/votes`, { options: [2] }),
      await anna.api('POST', `/v1/messages/${asked.id}/poll/close`),
    ])
      assert.equal(done.status, 200, JSON.stringify(done.body));

    await page.goto(`${service.url}/dashboard/env_dev/conversations/${cid}`);
    await page.getByRole('tab', { name: 'Messages' }).click();
    const item = (text: string) => page.getByRole('listitem').filter({ hasText: text });
    await item('Lunch?').getByText('mentions Ben Ode, everyone').waitFor();
    await item('Lunch?').getByText('👍 2, :party: 1').waitFor();
    await item('Lunch?').getByText('pinned by Ben Ode').waitFor();
    for (const text of ['Poll: Where?', 'anonymous', 'closed', 'Here: 0', 'There: 1'])
      await item('Where?').getByText(text, { exact: true }).waitFor();
    await item('Listen').getByText('note.ogg (audio/ogg, 64 bytes, 2.5 s)').waitFor();
    assert.deepEqual(problems.splice(0), []);
  });

  it('while the service is away the page stays with a banner, which goes by itself', async () => {
    const { page, context } = watched;
    await page.goto(`${service.url}/dashboard/env_dev`);
    await page.getByText('Messages and requests').waitFor();
    const banner = page.getByText('The service does not answer.');
    await context.route(/\/(v1\/|healthz)/, (route) => route.abort());
    await banner.waitFor();
    assert.ok(await page.getByRole('navigation', { name: 'Areas' }).isVisible());
    assert.ok(await page.getByText('Messages and requests').isVisible(), 'what was there is still there');
    await context.unroute(/\/(v1\/|healthz)/);
    await context.unrouteAll();
    await banner.waitFor({ state: 'detached' });
  });
});
