import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { useBrowser, visit } from './browser.ts';
import type { LongThreadPage } from './page/long-thread.tsx';

/** How many rows render in a thread of 10,000 messages, in Chromium with the real client and a service in the page. */
describe('the renders of a long thread', () => {
  const browser = useBrowser();

  it('an incoming message renders one row; who types, and the own text, none', async () => {
    const { page, problems } = await visit(
      browser,
      { url: 'http://kit.test', token: '' },
      { entry: 'long-thread.tsx' },
    );
    await page.locator('.parley-conversation').click();
    const last = page.locator('.parley-message').last();
    await last.and(page.locator('[aria-label*="10000:"]')).waitFor();
    await settle(page);
    const first = await rendered(page);
    assert.ok(first.length <= 2 * 60, `few rows at the start: ${first.length}`);

    for (let i = 1; i <= 3; i++) {
      await page.evaluate(() => (globalThis as unknown as Bench).page.server.arrive('conv_long'));
      await page.locator(`.parley-message[aria-label*="${10_000 + i}:"]`).waitFor();
      await settle(page);
      const texts = await rendered(page);
      assert.deepEqual(
        texts.map((text) => text.split(':')[0]),
        [String(10_000 + i)],
      );
    }

    await page.evaluate(() =>
      (globalThis as unknown as Bench).page.server.typing('conv_long', 'ines', 'start'),
    );
    await page.locator('.parley-typing', { hasText: 'Ines Rocha is typing' }).waitFor();
    await page.locator('.parley-conversation[data-typing]', { hasText: 'Ines Rocha is typing' }).waitFor();
    await page.locator('.parley-composer textarea').pressSequentially('Six keys');
    await settle(page);
    assert.deepEqual(await rendered(page), []);
    assert.ok((await page.locator('.parley-message').count()) <= 60);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});

interface Bench {
  page: LongThreadPage;
}
const rendered = (page: Page): Promise<string[]> =>
  page.evaluate(() => (globalThis as unknown as Bench).page.rendered.splice(0));
/** Two frames: what React has scheduled is done. */
const settle = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
