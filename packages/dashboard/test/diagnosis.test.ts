import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setUp, useService } from '../../server/test/support/use.ts';
import { openPage, signIn, useBrowser } from './browser.ts';
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
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
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

  it('follows the frames of one user, without what they say', async () => {
    const { actor: cleo, socket } = await scene.person('cleo');
    const dan = await scene.actor('dan');
    const { id } = await scene.direct(cleo, dan);
    const { page, problems } = watched;
    await page.goto(`${dashboard()}/users/${cleo.id}`);
    await page.getByRole('link', { name: 'Follow its frames' }).click();
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
