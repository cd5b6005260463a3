import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { first } from '../browser/first.ts';
import { loaded, openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Watched } from './browser.ts';
import { fillShop } from './scene.ts';

/** How a page begins (docs/dashboard.md, How fast it is). */
describe('a page that is opened by its address', () => {
  const { service, db } = useService();
  const browser = useBrowser();
  let watched: Watched;
  setUp(async () => {
    await pretendNode(db);
    await fillShop(service.url);
    watched = await openPage(browser, service.url);
    // Nothing looks again by itself: what is asked for twice was asked for too early or in other words.
    await watched.context.addInitScript(() => (globalThis.setInterval = (() => 0) as never));
    await signIn(watched.page, service.url);
  });

  for (const [area, calls] of Object.entries(first))
    it(`docs/dashboard#how-fast-it-is: ${area || 'the overview'} asks for its data before any script, and once`, async () => {
      const { page } = watched;
      await page.goto(`${service.url}/dashboard/env_dev${area}`);
      await page.locator('main h1').waitFor();
      await loaded(page);
      const asked = await page.evaluate(() =>
        (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
          .filter(({ name }) => name.includes('/v1/'))
          .map(({ name, initiatorType }) => [initiatorType, name.replace(location.origin, '')]),
      );
      const early = asked.filter(([by]) => by === 'link').map(([, address]) => address);
      assert.equal(early.length, 1 + calls.length, String(early));
      assert.ok(early.includes('/v1/session'));
      const again = asked.filter(([by, address]) => by !== 'link' && early.includes(address));
      assert.deepEqual(again, []);
      assert.ok(
        asked.every(([by, address]) => by === 'link' || address!.includes('lookup')),
        String(asked),
      );
    });

  it('docs/dashboard#how-fast-it-is: a page is at most six scripts', async () => {
    const { page } = watched;
    for (const area of Object.keys(first)) {
      const html = await (await page.request.get(`${service.url}/dashboard/env_dev${area}`)).text();
      const scripts = html.match(/rel="modulepreload"/g)!.length;
      assert.ok(scripts >= 2 && scripts <= 6, `${area}: ${scripts}`);
    }
  });
});
