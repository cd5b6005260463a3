// npm run measure-dashboard [-- part of a name …]: how soon the dashboard can be used on a slow machine, and whether anything jumps. The CPU is
// slowed to a quarter; the service is on this machine. Figures go to docs/dashboard.md.
import { readFileSync } from 'node:fs';
import { launchChromium, wholeBrowser } from '../../server/test/support/chromium.ts';
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

/** Milliseconds of CPU that a process's main thread has used: other work on the machine does not count. 0: it has ended. */
function mainThreadMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

const service = await startService();
const db = await openDb(service);
const browser = await launchChromium([], wholeBrowser);
try {
  await pretendNode(db);
  const shop = await fillShop(service.url);
  const { page, context } = await openPage(browser, service.url);
  await watchVitals(context);
  await signIn(page, service.url);
  const cdp = await context.newCDPSession(page);
  const system = await browser.newBrowserCDPSession();
  const renderers = async (): Promise<Map<number, number>> => {
    const { processInfo } = await system.send('SystemInfo.getProcessInfo');
    return new Map(
      processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => [id, mainThreadMs(id)]),
    );
  };
  /** The moment inside the page when its head is there and nothing on it is on its way. */
  const usable = async (): Promise<number> => {
    const ready = await page.waitForFunction(() => {
      const waiting = [...document.querySelectorAll('[role=status]')].some((e) =>
        e.textContent.startsWith('Loading'),
      );
      const shown = document.querySelector('main h1')?.checkVisibility({ visibilityProperty: true });
      return shown && !waiting ? performance.now() : null;
    });
    return (await ready.jsonValue())!;
  };
  const median = (of: number[]): number => of.sort((a, b) => a - b)[Math.floor(of.length / 2)]!;
  console.log(`CPU slowed ${slowdown} times, ${rounds} rounds, median in ms`);
  console.log(
    'page                        first paint  can be used  from cache   CPU time, not slowed   shift',
  );
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
    const cpu: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await page.goto('about:blank');
      const before = await renderers();
      await page.goto(address);
      await usable();
      const spent = [...(await renderers())].map(([pid, ms]) => ms - (before.get(pid) ?? 0));
      cpu.push(Math.max(...spent));
    }
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    for (const kind of ['cold', 'warm'] as const)
      for (let round = 0; round < rounds; round++) {
        await cdp.send('Network.setCacheDisabled', { cacheDisabled: kind === 'cold' });
        await page.goto('about:blank');
        await page.goto(address);
        const at = await usable();
        const seen = await vitals(page);
        // A task that was running when it appeared still holds up the first key.
        runs[kind].push(Math.max(at, ...seen.tasks.filter((end) => end < at + 200)));
        runs.shift.push(seen.shift);
        if (kind === 'cold') {
          const paint = await page.waitForFunction(
            () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
          );
          runs.paint.push((await paint.jsonValue())!);
        }
      }
    const figure = (of: number[]): string => String(Math.round(median(of))).padStart(11);
    console.log(
      `${name.padEnd(28)}${figure(runs.paint)}${figure(runs.cold)}  ${figure(runs.warm)}   ${figure(cpu)}              ${Math.max(...runs.shift).toFixed(3)}`,
    );
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  }
} finally {
  await browser.close();
  await db.close();
  await service.dispose();
}
