import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { logged } from '../../server/test/logs/tools.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';

/** The questions that operators ask: what went wrong with a request, did it arrive, what does this client do. */
describe('diagnosis', () => {
  const { service, scene, server } = useService();
  const browser = useBrowser();
  let watched: Watched;
  setUp(async () => {
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
  });
  const dashboard = (): string => `${service.url}/dashboard/env_dev`;

  it('a request id of an error body leads to its line in the log', async () => {
    const { body } = await server('GET', '/v1/users/nobody-of-this-name');
    const requestId = body.error.requestId as string;
    await logged((await signedInOwner(service.url)).in('env_dev'), `requestId=${requestId}`);
    const { page } = watched;
    await page.goto(`${dashboard()}/logs`);
    await page.getByRole('textbox', { name: 'Request id' }).fill(requestId);
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: 'users.get' }).getByRole('button').click();
    await page.getByRole('dialog').getByText(requestId).waitFor();
    assert.ok(page.url().endsWith(`?requestId=${requestId}`), 'the view can be shared');
    await page.getByRole('dialog').getByText('404 not_found').waitFor();
  });

  it('says why somebody did not get a message, from the message itself', async () => {
    const [ann, ben] = [await scene.actor('ann'), await scene.actor('ben')];
    const { id } = await scene.direct(ann, ben);
    await scene.send(ann, id, { text: 'Are you there?' });
    const { page } = watched;
    await page.goto(`${dashboard()}/conversations/${id}?view=messages`);
    await page.getByRole('main').getByRole('link', { name: 'Did it arrive?' }).click();
    await page.getByRole('textbox', { name: 'User' }).fill(ben.id);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await page.getByText('committed').first().waitFor();
    assert.equal(await page.getByText('Are you there?').count(), 0, 'never what it says');
  });

  it('shows what became of a message, as far as it is kept', async () => {
    const ann = await scene.actor('ann');
    const { id } = await scene.group(ann, []);
    const message = await scene.send(ann, id, { text: 'Helo' });
    const edit = { text: 'Hello', expectedVersion: 1 };
    assert.equal((await ann.api('PATCH', `/v1/messages/${message.id}`, edit)).status, 200);
    const { page } = watched;
    await page.goto(`${dashboard()}/conversations/${id}?view=messages`);
    await page.getByRole('button', { name: 'Show its history' }).click();
    const history = page.getByRole('list', { name: 'History, oldest first' }).getByRole('listitem');
    await history.nth(1).waitFor();
    assert.match(await history.nth(0).innerText(), /^written .* by ann.*: what it said is not kept$/);
    assert.match(await history.nth(1).innerText(), /^edited .* by ann.*: Hello$/);
  });

  it('a page says that it loads, that there is nothing, and what failed, with the request; then it goes on', async () => {
    const { page } = watched;
    const asked = '**/v1/users?*';
    const held = Promise.withResolvers<void>();
    await page.route(asked, (route) => void held.promise.then(() => route.continue()));
    await page.goto(`${service.url}/dashboard/env_other/users`);
    await page.getByText('Loading users').waitFor();
    held.resolve();
    await page.getByText('No users yet').waitFor();
    await page.unroute(asked);

    const error = { type: 'internal', code: 'internal', message: 'It broke.', requestId: 'req_broken' };
    await page.route(asked, (route) => route.fulfill({ status: 500, json: { error } }));
    await page.reload();
    await page.getByRole('alert').getByText('It broke.').waitFor();
    const link = page.getByRole('alert').getByRole('link', { name: 'req_broken' });
    assert.match((await link.getAttribute('href'))!, /\/env_other\/logs\?requestId=req_broken$/);
    await page.unroute(asked);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No users yet').waitFor();
  });

  it('shows what happens without a reload, and its time as it is here and in UTC', async () => {
    const gil = await scene.actor('gil');
    const { page } = watched;
    await page.goto(`${dashboard()}/users/${gil.id}`);
    await page.getByText('Not connected in the last 7 days').waitFor();
    const socket = await scene.online(gil);
    const open = page.getByText('open', { exact: true });
    await open.waitFor();
    await page.getByRole('region', { name: 'sockets' }).locator('time').first().focus();
    const shown = await page.getByRole('tooltip').innerText();
    const [, utc] = /(\S+Z) \(UTC\)/.exec(shown)!;
    const local = new Intl.DateTimeFormat('en-US', {
      dateStyle: 'medium',
      timeStyle: 'medium',
      timeZone: 'Europe/Berlin',
    });
    assert.ok(shown.startsWith(`${local.format(Date.parse(utc!))} (local)`), shown);
    await socket.close();
    await open.waitFor({ state: 'detached' });
  });

  it('follows the frames of one user, without what they say', async () => {
    const { actor: cleo, socket } = await scene.person('cleo');
    const dan = await scene.actor('dan');
    const { id } = await scene.direct(cleo, dan);
    const { page, problems } = watched;
    await page.goto(`${dashboard()}/users/${cleo.id}`);
    await page.getByRole('link', { name: 'Follow the frames' }).click();
    await page.getByRole('button', { name: `Follow ${cleo.id}` }).click();
    await page.getByText('Following 1 open socket').waitFor();
    await scene.send(dan, id, { text: 'a secret of dan' });
    await page.getByRole('row', { name: 'message.new' }).waitFor();
    assert.equal(await page.getByText('a secret of dan').count(), 0);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: `Follow ${cleo.id}` }).waitFor();
    socket.ws.terminate();
    assert.deepEqual(problems, []);
  });
});
