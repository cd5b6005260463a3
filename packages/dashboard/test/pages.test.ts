import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { environments } from '../../server/test/support/service.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { accessibilityProblems, assertFits, desktop, loaded, openPage, phone, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';
import { pages } from './pages.ts';
import { fillShop } from './scene.ts';
import type { Shop } from './scene.ts';

/** Every page at desktop and phone width, light and dark; `npm run pictures` takes a picture of each. */
describe('every page', () => {
  const { service, db } = useService();
  const browser = useBrowser();
  let shop: Shop;
  let watched: Watched;
  setUp(async () => {
    await pretendNode(db);
    shop = await fillShop(service.url);
    watched = await openPage(browser, service.url);
    await signIn(watched.page, service.url);
  });

  for (const [name, path, shows] of pages)
    it(`${name} fits, reads well and is quiet, wide and narrow, light and dark`, async () => {
      const { page, problems } = watched;
      await page.goto(new URL(`${service.url}/dashboard/env_dev${path(shop)}`).href);
      await page.getByText(shows(shop)).first().waitFor({ state: 'attached' });
      await loaded(page);
      assert.ok(await page.getByRole('button', { name: 'Copy as curl' }).first().isVisible());
      const bad: string[] = [];
      for (const [width, viewport] of Object.entries({ desktop, phone }))
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.setViewportSize(viewport);
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
          await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
          await assertFits(page, `${name} (${width})`);
          // All rules once, and contrast once for each colour scheme: neither depends on the width.
          if (width === 'desktop') {
            const found = await accessibilityProblems(
              page,
              colorScheme === 'light' ? null : ['color-contrast'],
            );
            bad.push(...found.map((problem) => `${colorScheme}: ${problem}`));
          }
        }
      assert.deepEqual(bad, []);
      assert.deepEqual(problems.splice(0), []);
    });

  it('docs/dashboard#rules-for-every-page: menus work by keys alone, and give the focus back', async () => {
    const { page, problems } = watched;
    await page.goto(`${service.url}/dashboard/env_dev/users`);
    await page.setViewportSize(desktop);
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement!.textContent);
    const button = page.getByRole('button', { name: /^owner/i });
    await button.focus();
    await page.keyboard.press('Enter');
    await page.locator('[role=menuitem]:focus', { hasText: 'Your account' }).waitFor();
    assert.equal(await button.getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('ArrowUp');
    assert.equal(await focused(), 'Sign out');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), 'Light colours');
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.press('Escape');
    await page.locator('button[aria-expanded=false]:focus').waitFor();
    assert.match(await focused(), /^O/);
    assert.equal(await page.getByRole('menuitem').count(), 0);
    // On a phone it is in the navigation, which stays open.
    await page.setViewportSize(phone);
    await page.getByRole('button', { name: 'Open the menu' }).click();
    await page.getByRole('button', { name: /^Environment/ }).click();
    await page.locator('[role=menuitem]:focus').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('button[aria-expanded=false]:focus', { hasText: 'Environment' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Open the menu' }).waitFor();
    assert.deepEqual(problems.splice(0), []);
  });

  it('what “Copy as curl” copies runs in a terminal: with a key, with the session, and a change', async () => {
    const { page, context } = watched;
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const [cookie] = (await context.cookies()).filter(({ name }) => name === 'parley_session');
    const env = {
      PATH: process.env['PATH'],
      PARLEY_SECRET_KEY: environments.dev.secretKey,
      PARLEY_SESSION: cookie!.value,
    };
    // It says for a moment only that it has copied, and on a busy machine nobody may look in that moment: the page itself must.
    const copy = async () => {
      await page.evaluate(() => {
        const { body } = document;
        delete body.dataset['said'];
        new MutationObserver((_, observer) => {
          if (!body.textContent.includes('Copied')) return;
          body.dataset['said'] = 'Copied';
          observer.disconnect();
        }).observe(body, { subtree: true, childList: true, characterData: true });
      });
      await page.getByRole('button', { name: 'Copy as curl' }).first().click();
      await page.locator('body[data-said]').waitFor();
    };
    const copied = async (path: string) => {
      await page.goto(new URL(`${service.url}/dashboard/env_dev${path}`).href);
      if (path.endsWith('new-environment')) await page.getByRole('textbox', { name: 'Name' }).fill("Ann's");
      await copy();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      return JSON.parse((await promisify(execFile)('bash', ['-c', command], { env })).stdout) as any;
    };
    assert.equal((await copied('/users/alice')).name, 'Alice Adler');
    assert.equal((await copied('/keys')).data[0].id, environments.dev.secretKey.split('_')[2]);
    assert.equal((await copied('/../new-environment')).name, "Ann's");

    // Over http, and not from this machine, a page has no clipboard.
    await page.goto(`${service.url}/dashboard/env_dev/logs`);
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await copy();
    await page.getByRole('textbox', { name: 'Operation' }).focus();
    await page.keyboard.press('Control+V');
    assert.match(await page.getByRole('textbox', { name: 'Operation' }).inputValue(), /\/v1\/logs\?/);
  });
});
