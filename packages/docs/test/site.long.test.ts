import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { accessibilityProblems, assertFits, openPage, phone } from '../../dashboard/test/browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import { vitals, watchVitals } from '../../dashboard/test/vitals.ts';
import { environments } from '../../server/test/support/service.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { buildClient, startProgram, writeFiles } from './programs.ts';
import { makeFolder, ownNames } from './run.ts';

/** The documentation in a real Chromium: by eye, by keyboard, on a phone, in both themes. */

const { service, server } = useService();
const browser = useBrowser();
const folder = use(makeFolder, (made) => made.remove());
const long = { timeout: 10 * 60_000 };
const paths = [
  '',
  'guides/tokens',
  'guides/webhooks',
  'reference/messages',
  'reference/socket',
  'reference/errors',
  'reference/objects',
  'sdk/client',
  'operations/deployment',
];
/** Where `SHOTS` names a folder, pictures are left in it. */
const shots = process.env['SHOTS'];

async function picture(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: join(shots, `${name}.png`) });
}

describe('the documentation in a browser', () => {
  it('is accessible, fits and does not jump, light and dark, on a desk and on a phone', long, async () => {
    const desk = { width: 1440, height: 960 };
    // Each page in two of the four ways, the two kinds of pages in all.
    const both = ['', 'reference/messages'];
    for (const [theme, size, shown] of [
      ['light', desk, paths],
      ['dark', phone, paths],
      ['dark', desk, both],
      ['light', phone, both],
    ] as const) {
      const { page, context, problems } = await openPage(browser, service.url);
      await watchVitals(context);
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      await page.setViewportSize(size);
      for (const path of shown) {
        const where = `${path || 'quickstart'} ${theme} ${size.width}`;
        await page.goto(`${service.url}/docs/${path}`);
        assert.equal(await page.getAttribute('html', 'data-theme'), theme);
        await assertFits(page, where);
        await page.evaluate(() => document.fonts.ready);
        const { shift, moved } = await vitals(page);
        assert.equal(shift, 0, `${where}: ${moved.join('\n')}`);
        assert.deepEqual(await accessibilityProblems(page), [], where);
        await picture(page, where.replaceAll(/[ /]/g, '-'));
      }
      assert.deepEqual(problems, []);
      await context.close();
    }
  });

  it('search by keyboard finds an operation, a guide and an error', long, async () => {
    const { page, context, problems } = await openPage(browser, service.url);
    await page.goto(`${service.url}/docs`);
    for (const [words, title, url] of [
      ['send message', 'Send a message', /reference\/messages#messages\.send$/],
      ['outbox', 'Offline and outbox', /guides\/offline/],
      ['version_conflict', 'version_conflict', /reference\/errors#version_conflict$/],
      ['createClient', 'createClient', /sdk\/client#main\.createClient$/],
    ] as const) {
      await page.locator('h1').waitFor();
      await page.keyboard.press('/');
      await page.getByRole('searchbox').fill(words);
      const found = page.locator('dialog.search li a', { hasText: title }).first();
      await found.waitFor();
      if (words === 'outbox') {
        assert.deepEqual(await accessibilityProblems(page), [], 'the search');
        await picture(page, 'search');
      }
      await found.press('Enter');
      await page.waitForURL(url);
    }
    await page.keyboard.press('/');
    await page.getByRole('searchbox').fill('xyzzyqwert');
    await page.getByText('No results for “xyzzyqwert”.').waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  });

  it('a language and a theme that were chosen stay; code is copied', long, async () => {
    const { page, context, problems } = await openPage(browser, service.url);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${service.url}/docs/reference/messages`);
    const send = page.locator('section', { has: page.locator('[id="messages.send"]') });
    await send.getByRole('button', { name: 'Python' }).click();
    await page.getByRole('button', { name: 'Dark colours' }).click();
    await page.goto(`${service.url}/docs/reference/users`);
    assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
    const sample = page
      .locator('section', { has: page.locator('[id="users.upsert"]') })
      .locator('.code')
      .first();
    await sample.locator('pre.on', { hasText: 'urllib.request' }).waitFor();
    await page.bringToFront();
    const copy = sample.locator('.copy');
    await copy.click();
    const shown = await sample.locator('pre.on').textContent();
    await page.waitForFunction(async (text) => (await navigator.clipboard.readText()) === text, shown);
    assert.deepEqual(problems, []);
    await context.close();
  });

  it('a call is tried with fields; the key stays in the tab', long, async () => {
    const { page, context, problems } = await openPage(browser, service.url);
    await page.goto(`${service.url}/docs/reference/users`);
    const list = page.locator('section', { has: page.locator('[id="users.list"]') });
    await list.getByRole('button', { name: 'Try it' }).click();
    await list.getByLabel('Key or token').fill(environments.dev.secretKey);
    await list.getByLabel('namePrefix').fill('');
    await list.getByLabel('limit').fill('3');
    const asked = page.waitForRequest((request) => request.url().includes('/v1/users'));
    await list.getByRole('button', { name: 'Send GET' }).click();
    assert.match((await asked).url(), /\/v1\/users\?limit=3$/);
    await list.locator('.answer', { hasText: '"data"' }).waitFor();
    assert.match(await list.locator('.answer .code-head').innerText(), /200[\s\S]*req_/);
    assert.deepEqual(await accessibilityProblems(page), [], 'the form');
    await picture(page, 'try-it');

    // The next page of the tab has it, another tab has not.
    await page.goto(`${service.url}/docs/reference/messages`);
    const other = await context.newPage();
    await other.goto(`${service.url}/docs/reference/messages`);
    for (const [one, key] of [
      [page, environments.dev.secretKey],
      [other, ''],
    ] as const) {
      const get = one.locator('section', { has: one.locator('[id="messages.get"]') });
      await get.getByRole('button', { name: 'Try it' }).click();
      assert.equal(await get.getByLabel('Key or token').inputValue(), key);
    }
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes('sk_live')), false);
    assert.deepEqual(problems, []);
    await context.close();
  });

  it('on a phone the menu opens, and leads on', long, async () => {
    const { page, context } = await openPage(browser, service.url);
    await page.setViewportSize(phone);
    await page.goto(`${service.url}/docs`);
    const menu = page.getByRole('navigation', { name: 'Pages' });
    assert.equal(await menu.isVisible(), false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await picture(page, 'phone-menu');
    await menu.getByRole('link', { name: 'Webhooks', exact: true }).first().click();
    await page.waitForURL(/guides\/webhooks$/);
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor();
    await context.close();
  });

  it('the quickstart ends with a message in a browser', long, async () => {
    const own = ownNames();
    await writeFiles(folder, 'quickstart.md', own);
    await buildClient(folder);
    const members = [own('alice'), own('bob')];
    const { body: direct } = await server('POST', '/v1/conversations', { type: 'direct', members });
    await server('POST', `/v1/conversations/${direct.id}/messages`, {
      senderId: own('bob'),
      text: 'Hello, Alice!',
    });
    const settings = { PARLEY_URL: service.url, PARLEY_SECRET_KEY: environments.dev.secretKey, PORT: '0' };
    const program = await startProgram(folder, 'server.mjs', settings);
    const context = await browser.newContext();
    try {
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      await page.goto(program.url);
      await page.getByText(`${own('bob')}: Hello, Alice! (sent)`).waitFor();
      await page.fill('#text', 'Hello, Bob!');
      await page.keyboard.press('Enter');
      await page.getByText(`${own('alice')}: Hello, Bob! (sent)`).waitFor();
      await picture(page, 'quickstart-result');
    } finally {
      await context.close();
      await program.stop();
    }
  });
});
