import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser, wholeBrowser } from '../../server/test/support/chromium.ts';
import { keptPictures } from './kept-pictures.ts';

const matches = keptPictures(new URL('pictures/', import.meta.url));
const wide = { width: 960, height: 640 };
const phone = { width: 390, height: 700 };

async function chat(browser: Browser, options: object): Promise<Page> {
  const { page } = await visit(
    browser,
    { url: 'http://kit.test', token: '', ...options },
    { entry: 'story.tsx' },
  );
  await page.setViewportSize(wide);
  await page.locator('.parley-conversation', { hasText: 'Rosa Vidal' }).waitFor();
  return page;
}

describe('the looks of the kit', () => {
  const browser = useBrowser([], wholeBrowser);

  for (const [theme, dir] of [
    ['light', 'ltr'],
    ['dark', 'rtl'],
  ] as const)
    it(`${theme}, ${dir}: list and thread, wide and narrow, and a picture large`, async () => {
      const page = await chat(browser, { theme, dir });
      await page.evaluate(
        `story.typing('conv_packing', 'ines', 'start'), setInterval(() => story.typing('conv_packing', 'ines', 'start'), 2000)`,
      );
      await page.locator('.parley-conversation[data-typing]').waitFor();
      await page.setViewportSize(phone);
      await matches(page, `phone-list-${theme}`);
      await page.setViewportSize(wide);
      await page.locator('.parley-conversation', { hasText: 'Tomás' }).click();
      await page.locator('.parley-image img').nth(1).waitFor();
      await page.locator('.parley-presence').first().waitFor();
      await page.locator('.parley-receipt').first().waitFor();
      await matches(page, `chat-${theme}-${dir}`);
      await page.setViewportSize(phone);
      await matches(page, `phone-thread-${theme}`);
      await page.setViewportSize(wide);

      await page.getByRole('button', { name: 'Open lamp.png' }).click();
      const viewer = page.getByRole('dialog', { name: 'lamp.png' });
      await viewer.locator('img').waitFor();
      assert.deepEqual(await accessibilityProblems(page), []);
      await matches(page, `viewer-${theme}`);
      await page.keyboard.press(dir === 'rtl' ? 'ArrowLeft' : 'ArrowRight');
      await page.getByRole('dialog', { name: 'm4-kit.png' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      const focused = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
      assert.equal(focused, 'Open lamp.png', 'the focus is back where it was');
      await page.context().close();
    });

  it('F6 goes to the next region, the slash to the search, letters to a conversation', async () => {
    const page = await chat(browser, {});
    const focused = () =>
      page.evaluate(() => {
        const { className, tagName, textContent } = document.activeElement as HTMLElement;
        return className === 'parley-conversation' ? textContent : `${className} ${tagName}`.trim();
      });
    await page.keyboard.press('/');
    assert.equal(await focused(), 'INPUT');
    await page.locator('.parley-conversation').first().focus();
    await page.keyboard.press('m');
    assert.match(await focused(), /Mei Okafor/);
    await page.locator('.parley-conversation', { hasText: 'Tomás' }).click();
    await page.locator('.parley-message').first().waitFor();
    await page.keyboard.press('F6');
    assert.equal(await focused(), 'TEXTAREA');
    await page.keyboard.press('Shift+F6');
    assert.match(await focused(), /Tomás Barreiro/);
    await page.context().close();
  });

  it('a call rings, goes on as a grid and with somebody pinned; devices are checked before it', async () => {
    const { page } = await visit(browser, { url: 'http://kit.test', token: '' }, { entry: 'calls.tsx' });
    await page.setViewportSize(wide);
    await page.getByRole('alertdialog').waitFor();
    await matches(page, 'call-incoming');
    await page.evaluate(`(() => {
      const { change, person, track } = kit;
      const seen = (id, color, more) => person(id, { videoTrack: track(color), videoMuted: false, ...more });
      const call = { createdBy: 'ines', status: 'ongoing', answeredAt: null };
      change({ state: 'connected', call, participants: [seen('ines', '#2a5a49', { speaking: true }), seen('sami', '#5b4032'), person('priya', { audioMuted: true }), seen('nora', '#3c3d2c')] });
    })()`);
    await page.locator('.parley-call[data-layout=grid] video').nth(2).waitFor();
    await drawn(page);
    await matches(page, 'call-grid');
    await page.getByRole('button', { name: 'Pin Sami Koskinen' }).click();
    await page.locator('.parley-call[data-layout=speaker]').waitFor();
    await drawn(page);
    await matches(page, 'call-pinned');
    await page.evaluate('kit.preview(true)');
    const preview = page.getByRole('region', { name: 'Before you join' });
    await preview.locator('video').waitFor();
    await preview.getByRole('alert').getByText('Microphone: not allowed').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await drawn(page);
    await matches(page, 'call-preview');
    await preview.getByRole('button', { name: 'Join' }).click();
    const did = await page.evaluate(() => (globalThis as unknown as { kit: { did: string[] } }).kit.did);
    assert.equal(did.at(-1), 'join {"mic":false,"camera":true}');
    await page.context().close();
  });
});

/** Each video shows a picture. */
const drawn = (page: Page): Promise<unknown> =>
  page.waitForFunction(() => [...document.querySelectorAll('video')].every((video) => video.videoWidth > 0));
