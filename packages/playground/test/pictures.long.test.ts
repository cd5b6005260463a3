import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { useBrowser, wholeBrowser } from '../../server/test/support/chromium.ts';
import { keptPictures } from '../../react/test/kept-pictures.ts';
import { startService } from '../../server/test/support/service.ts';
import { use } from '../../server/test/support/use.ts';
import { conversation, field, open, row } from './demo.ts';

/** The main screens of the demo beside pictures that were kept. */

const compare = keptPictures(new URL('pictures/', import.meta.url));
const wide = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

/** Light and dark, without what differs from run to run: the time of day, and which frames went by. */
async function matches(page: Page, name: string): Promise<void> {
  for (const theme of ['light', 'dark']) {
    await page.evaluate((chosen) => {
      document.documentElement.dataset['theme'] = chosen;
      for (const time of document.querySelectorAll('time')) time.textContent = '09:41';
    }, theme);
    await compare(page, `${name}-${theme}`);
  }
}

describe('the looks of the demo', () => {
  const service = use(
    () => startService(),
    (s) => s.dispose(),
  );
  const browser = useBrowser([], wholeBrowser);

  it('signing in, one person, two people, and a phone, in light and dark', async () => {
    const { page } = await open(browser, service.url, { bypassCSP: true });
    await page.addStyleTag({
      content: '.parley-frames > ol, .parley-wire-head > small { visibility: hidden }',
    });
    const start = page.getByRole('button', { name: /Nora Lind/ });
    await start.waitFor();
    await matches(page, 'sign-in');
    await page.setViewportSize(phone);
    await matches(page, 'phone-sign-in');
    await page.setViewportSize(wide);
    await start.click();
    await row(page, 'I am a bot').waitFor();
    await conversation(page, 'Pip').locator('.parley-presence').waitFor();
    await conversation(page, 'Packing table').locator('.parley-unread', { hasText: '2' }).waitFor();
    await conversation(page, 'Packing table').locator('.parley-avatar-pair').waitFor();
    await conversation(page, 'Tomás').click();
    await page.locator('.parley-image img').waitFor();
    await page.waitForFunction(() => document.querySelector<HTMLImageElement>('.parley-image img')!.complete);
    await row(page, 'Sorry about').locator('.parley-receipt[data-state=read]').waitFor();
    await page.locator('.parley-conversation .parley-unread').nth(1).waitFor({ state: 'detached' });
    await page.locator('.parley-trail > li[data-on]').nth(3).waitFor();
    await page.locator('.parley-thread-head small', { hasText: 'Offline' }).waitFor();
    await matches(page, 'one');

    await page.setViewportSize(phone);
    await field(page).waitFor();
    await matches(page, 'phone-thread');
    await page.getByRole('button', { name: 'Back to the list' }).click();
    await conversation(page, 'Tomás').waitFor();
    await matches(page, 'phone-list');
    await page.locator('.demo-bottom').getByRole('button', { name: 'Wire' }).click();
    await page.locator('.parley-wire').waitFor();
    await matches(page, 'phone-wire');

    await page.setViewportSize(wide);
    await conversation(page, 'Tomás').click();
    await page.getByRole('button', { name: 'Two people' }).click();
    const sides = page.locator('.demo-side');
    await sides.nth(1).locator('.parley-image img').waitFor();
    await page.getByText('Tomás is online').waitFor();
    await page.getByText('Nora is online').waitFor();
    await page.locator('.parley-sequence g[data-heard]').nth(2).waitFor();
    for (const side of [0, 1])
      await sides.nth(side).locator('.parley-receipt[data-state=read]').last().waitFor();
    await matches(page, 'two');
    await page.context().close();
  });
});
