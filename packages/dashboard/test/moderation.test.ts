import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setUp, useService } from '../../server/test/support/use.ts';
import { accessibilityProblems, openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';

/** The review queue, by the keyboard. */
describe('moderation', () => {
  const { service, scene, server } = useService();
  const browser = useBrowser();
  let watched: Watched;
  setUp(async () => {
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
  });

  it('dashboard#moderation: reports are worked through by keys, actions go in one request, and what others decided is said', async () => {
    const { page, problems } = watched;
    const [ann, mal, eve] = await Promise.all([scene.actor('ann'), scene.actor('mal'), scene.actor('eve')]);
    const { id: cid } = await scene.group(ann, [mal, eve], { name: 'Newcomers' });
    await scene.send(ann, cid, { text: 'Welcome here.' });
    const report = async (fields: object) =>
      (await ann.api('POST', '/v1/reports', { reason: 'spam', ...fields })).body.id as string;
    const third = await report({ userId: eve.id });
    const harmless = await scene.send(eve, cid, { text: 'A fair question.' });
    const second = await report({ messageId: harmless.id });
    const bad = await scene.send(mal, cid, { text: 'Buy my gold.' });
    const first = await report({ messageId: bad.id, note: 'Again and again.' });
    await mal.api('PATCH', `/v1/messages/${bad.id}`, { text: 'Nothing to see.', expectedVersion: 1 });

    await page.goto(`${service.url}/dashboard/env_dev`);
    await page.getByRole('link', { name: 'Moderation', exact: true }).click();
    const article = page.getByRole('article');
    const shown = article.getByRole('region', { name: 'The report' });
    await shown.getByText('Buy my gold.').waitFor();
    await article.getByText('Again and again.').waitFor();
    // In its surroundings, as it is now.
    const around = article.getByRole('region', { name: 'The messages around it' });
    await around.getByText('Welcome here.').waitFor();
    await around.getByRole('listitem').filter({ hasText: 'reported' }).getByText('Nothing to see.').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);

    await page.keyboard.press('j');
    await shown.getByText('A fair question.').waitFor();
    await page.keyboard.press('k');
    await shown.getByText('Buy my gold.').waitFor();
    // Letters that are typed are no keys.
    await article.getByLabel('Note for colleagues').fill('');
    await article.getByLabel('Note for colleagues').pressSequentially('jdx');
    await page.getByRole('heading', { name: 'Moderation', level: 1 }).click();
    const asked: unknown[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PATCH') asked.push(request.postDataJSON());
    });
    await page.keyboard.press('d');
    await page.keyboard.press('s');
    await article.getByRole('checkbox', { name: 'Silence' }).and(page.locator(':checked')).waitFor();
    await page.keyboard.press('r');
    await shown.getByText('A fair question.').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.desk-row').length === 2);
    assert.equal(asked.length, 1);
    assert.partialDeepStrictEqual(asked[0], {
      status: 'resolved',
      actions: ['delete_message', 'silence'],
      note: 'jdx',
    });
    assert.equal((await server('GET', `/v1/messages/${bad.id}`)).body.text, null);
    assert.equal((await server('GET', `/v1/users/${mal.id}/restrictions`)).body.data.length, 1);

    // Somebody else is faster.
    assert.equal((await server('PATCH', `/v1/reports/${second}`, { status: 'resolved' })).status, 200);
    await page.keyboard.press('x');
    await page.getByText('Somebody else has decided about it.').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.desk-row').length === 1);
    await page.keyboard.press('j');
    await article.getByRole('heading', { name: 'The user' }).waitFor();
    await article.getByText('A fair question.').waitFor();
    await page.keyboard.press('x');
    await page.getByText('No open reports').waitFor();
    const closed = (await server('GET', `/v1/reports?targetUserId=${eve.id}&status=dismissed`)).body.data;
    assert.deepEqual(
      closed.map((item: { id: string }) => item.id),
      [third],
    );
    const done = (await server('GET', `/v1/reports?targetUserId=${mal.id}`)).body.data;
    assert.deepEqual([done[0].id, done[0].status], [first, 'resolved']);

    // Word lists and rules.
    await page.getByRole('tab', { name: 'Word lists and rules' }).click();
    await page.getByRole('button', { name: 'New word list' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('offers');
    await dialog.getByLabel('Action').selectOption('send the message and report it');
    await dialog.getByLabel('Entries').fill('gold*\n\nsecret offer');
    await dialog.getByRole('button', { name: 'Save the list' }).click();
    await page.getByRole('cell', { name: 'offers' }).waitFor();
    const list = (await server('GET', '/v1/moderation/lists/offers')).body;
    assert.deepEqual([list.entries, list.action], [['gold*', 'secret offer'], 'report']);
    await page.getByRole('switch', { name: 'Owners of groups set roles' }).click({ force: true });
    await page
      .getByRole('switch', { name: 'Owners of groups set roles' })
      .and(page.locator(':checked'))
      .waitFor();
    assert.deepEqual(problems.splice(0), []);
  });
});
