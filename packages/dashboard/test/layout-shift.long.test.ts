import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { desktop, loaded, openPage, phone, signIn } from './browser.ts';
import { useBrowser, wholeBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';
import { pages } from './pages.ts';
import { fillShop } from './scene.ts';
import type { Shop } from './scene.ts';
import { vitals, watchVitals } from './vitals.ts';

/** Nothing on a page jumps while it loads: what comes later takes a place that was kept for it. */
describe('layout shift', () => {
  const { service, db } = useService();
  const browser = useBrowser([], wholeBrowser);
  let shop: Shop;
  let watched: Watched;
  setUp(async () => {
    await pretendNode(db);
    shop = await fillShop(service.url);
    watched = await openPage(browser, service.url);
    await watchVitals(watched.context);
    await signIn(watched.page, service.url);
  });

  for (const [name, path, shows] of pages)
    it(`${name} stays where it is`, async () => {
      const { page } = watched;
      for (const viewport of [desktop, phone]) {
        await page.setViewportSize(viewport);
        await page.goto('about:blank');
        await page.goto(new URL(`${service.url}/dashboard/env_dev${path(shop)}`).href);
        await page.getByText(shows(shop)).first().waitFor({ state: 'attached' });
        await loaded(page);
        await page.evaluate(() => document.fonts.ready);
        const { shift, moved } = await vitals(page);
        assert.equal(shift, 0, `${viewport.width} px: ${moved.join('\n')}`);
      }
    });
});
