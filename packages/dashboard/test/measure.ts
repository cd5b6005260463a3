// npm run measure-dashboard [-- part of a name …]: how soon the dashboard can be used on a slow machine, and whether anything jumps. The CPU is
// slowed to a quarter; the service is on this machine. Figures go to docs/dashboard.md.
import { chromium } from 'playwright-core';
import { flags } from '../../react/test/browser.ts';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { startService } from '../../server/test/support/service.ts';
import { openDb } from '../../server/test/support/use.ts';
import { openPage, signIn } from './browser.ts';
import { pages } from './pages.ts';
import { fillShop } from './scene.ts';
import { vitals, watchVitals } from './vitals.ts';

const slowdown = 4;
const rounds = 5;
const parts = process.argv.slice(2);

const service = await startService();
const db = await openDb(service);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
try {
  await pretendNode(db);
  const shop = await fillShop(service.url);
  const { page, context } = await openPage(browser, service.url);
  await watchVitals(context);
  await signIn(page, service.url);
  const cdp = await context.newCDPSession(page);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  const median = (of: number[]): number => of.sort((a, b) => a - b)[Math.floor(of.length / 2)]!;
  console.log(`CPU slowed ${slowdown} times, ${rounds} rounds, median in ms`);
  console.log('page                        first paint  can be used  from cache   shift');
  for (const [name, path] of pages.filter(
    ([name]) => parts.length === 0 || parts.some((part) => name.includes(part)),
  )) {
    const address = new URL(`${service.url}/dashboard/env_dev${path(shop)}`).href;
    const runs: Record<'paint' | 'cold' | 'warm' | 'shift', number[]> = {
      paint: [],
      cold: [],
      warm: [],
      shift: [],
    };
    for (const kind of ['cold', 'warm'] as const)
      for (let round = 0; round < rounds; round++) {
        await cdp.send('Network.setCacheDisabled', { cacheDisabled: kind === 'cold' });
        await page.goto('about:blank');
        await page.goto(address);
        // The head of the page is there, and nothing on it is on its way: the moment is taken inside the page.
        const ready = await page.waitForFunction(() => {
          const waiting = [...document.querySelectorAll('[role=status]')].some((e) =>
            e.textContent.startsWith('Loading'),
          );
          return document.querySelector('main h1')?.checkVisibility({ visibilityProperty: true }) && !waiting
            ? performance.now()
            : null;
        });
        const at = (await ready.jsonValue())!;
        const seen = await vitals(page);
        // A task that was running when it appeared still holds up the first key.
        runs[kind].push(Math.max(at, ...seen.tasks.filter((end) => end < at + 200)));
        runs.shift.push(seen.shift);
        if (kind === 'cold')
          runs.paint.push(
            await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]!.startTime),
          );
      }
    const figure = (of: number[]): string => String(Math.round(median(of))).padStart(11);
    console.log(
      `${name.padEnd(28)}${figure(runs.paint)}${figure(runs.cold)}  ${figure(runs.warm)}   ${Math.max(...runs.shift).toFixed(3)}`,
    );
  }
} finally {
  await browser.close();
  await db.close();
  await service.dispose();
}
