import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { LongThreadPage } from './page/long-thread.tsx';
import type { ThousandPage } from './page/thousand.tsx';

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

  it('reactions#message, T11.1: a reaction renders one message of 1,000, also where another one quotes it', async () => {
    const { page, problems } = await visit(
      browser,
      { url: 'http://kit.test', token: '' },
      { entry: 'thousand.tsx' },
    );
    const rows = page.locator('.parley-message');
    await rows.nth(999).waitFor();
    const row = rows.and(page.locator('[aria-label$=": Message 500"]'));
    const thumb = row.getByRole('button', { name: '👍, ' });
    const heart = row.getByRole('button', { name: '❤️, ' });
    await rows.nth(899).locator('.parley-quote', { hasText: 'Message 500' }).waitFor();
    await settle(page);
    await rendered(page);
    // Twice, because the first one loads what the client needs for reactions.
    for (const count of [1, 2]) {
      await page.evaluate(
        (n) => (globalThis as unknown as Thousand).page.server.react('msg_conv_long_500', `user_${n}`, '👍'),
        count,
      );
      await thumb.and(page.getByRole('button', { name: `👍, ${count}` })).waitFor();
      await settle(page);
      assert.deepEqual(await rendered(page), ['Message 500']);
    }
    // One's own: it shows at once, and then comes the answer. That the pointer is there renders the message, too.
    await row.hover();
    await row.getByRole('button', { name: 'React with ❤️' }).click();
    await heart.and(page.locator('[aria-pressed=true]')).waitFor();
    await settle(page);
    assert.deepEqual([...new Set(await rendered(page))], ['Message 500']);
    assert.equal(await rows.count(), 1_000);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});

interface Bench {
  page: LongThreadPage;
}
interface Thousand {
  page: ThousandPage;
}
const rendered = (page: Page): Promise<string[]> =>
  page.evaluate(() => (globalThis as unknown as Bench).page.rendered.splice(0));
/** Two frames: what React has scheduled is done. */
const settle = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
