import { setTimeout as delay } from 'node:timers/promises';
import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { rssOf, usageOf } from '../procfs.ts';
import { groups } from '../servers/server.ts';
import { format } from '../stats.ts';
import { enter, record } from './paced.ts';

/**
 * Half of the maximum for an hour, or for --seconds: memory at the end beside that of its sixth part, after ten minutes, and open
 * descriptors. Then all sockets vanish and come back, ten times in a row.
 */

const warmShare = 1 / 6;
const lookMs = 1_000;
const storms = 10;
const settleMs = 5_000;
/** 2,000 users: 7,000 messages a second, and each below what one may send in a minute. */
const paceMs = 285;

export async function soak(bench: Bench): Promise<void> {
  const plan = groups('soak', bench.options.users * 2, 10);
  const { soakMs, warmMs } = bench.options;
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add('soak', 'parley', metric, unit, value);
  await withRunning(bench, bench.freshParley('soak'), async (parley) => {
    const look = () => ({
      rss: rssOf([parley.gateway]) / 1_024,
      descriptors: usageOf(parley.gateway).descriptors,
    });
    await enter(bench, parley, plan);
    let over = false;
    const looks: { at: number; rss: number; descriptors: number }[] = [];
    const begin = performance.now();
    const looking = (async () => {
      while (!over) {
        looks.push({ at: performance.now() - begin, ...look() });
        await delay(lookMs);
      }
    })();
    const run = await bench.load
      .run({ paceMs, burst: 1, warmMs, windowMs: soakMs }, parley.roots)
      .finally(() => (over = true));
    await looking;
    record(bench, 'soak', 'parley', run, 10);
    // The mean of a tenth of the time: a single look sees where the collector happens to be.
    const mean = (from: number): { rss: number; descriptors: number } => {
      const some = looks.filter(({ at }) => at >= from && at <= from + soakMs / 10);
      const of = (key: 'rss' | 'descriptors') => some.reduce((sum, s) => sum + s[key], 0) / some.length;
      return { rss: of('rss'), descriptors: of('descriptors') };
    };
    const early = mean(warmMs + soakMs * warmShare);
    const late = mean(warmMs + soakMs * 0.9);
    add('minutes', '', soakMs / 60_000);
    add('RSS after a sixth of the time', 'MB', early.rss);
    add('RSS at the end', 'MB', late.rss);
    add('RSS at the end to that after a sixth', '×', late.rss / early.rss);
    add('descriptors after a sixth of the time', '', early.descriptors);
    add('descriptors at the end', '', late.descriptors);
    bench.say(
      `soak: RSS ${format(early.rss)} to ${format(late.rss)} MB, descriptors ${format(early.descriptors)} to ${format(late.descriptors)}`,
    );
    let first: ReturnType<typeof look> | undefined;
    let failed = 0;
    for (let i = 0; i < storms; i++) {
      const accounts = await parley.accounts(plan);
      const opened = await bench.load.open({ wire: parley.wire, port: parley.port, accounts, atOnce: 0 });
      failed += opened.failed;
      await delay(settleMs);
      first ??= look();
      bench.say(`soak: storm ${i + 1}: RSS ${format(look().rss)} MB, ${opened.failed} failed`);
    }
    const last = look();
    add('storms', '', storms);
    add('storms: failed logins', '', failed);
    add('storms: RSS after the last to that after the first', '×', last.rss / first!.rss);
    add(
      'storms: descriptors after the last less those after the first',
      '',
      last.descriptors - first!.descriptors,
    );
  });
}
