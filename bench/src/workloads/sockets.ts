import { pause, rounds, timesOf, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { rssOf } from '../procfs.ts';
import { groups, loners } from '../servers/server.ts';
import type { Plan, Running, ServerName } from '../servers/server.ts';
import { format } from '../stats.ts';
import { chat } from './paced.ts';

/** Workloads about the sockets themselves: idle and storm. */

const logins = 100;
const settleMs = 4_000;

/** The store is filled by a process that then ends, so that its memory is not counted. */
async function prefill(bench: Bench, plan: Plan): Promise<void> {
  if (!bench.parley) return;
  const filled = withRunning(bench, bench.parley, async (running) => {
    await running.accounts(plan);
  });
  // The rounds say what is wrong; the peers go on.
  await filled.catch((error: unknown) => bench.say(String(error)));
}

/** RSS after a few logins: code is loaded and compiled, sockets are gone again. */
async function baseline(bench: Bench, running: Running, plan: Plan): Promise<number> {
  const accounts = (await running.accounts(plan)).slice(0, 50);
  await bench.load.open({ wire: running.wire, port: running.port, accounts, atOnce: logins });
  await bench.load.close();
  await pause(1_000);
  return rssOf([running.gateway]);
}

const opens = (name: ServerName): boolean => chat(name) && name !== 'socketio-row';

export async function idle(bench: Bench): Promise<void> {
  const { users, quick } = bench.options;
  const sizes = quick ? [users * 2] : [users * 2, users * 10];
  for (const size of sizes)
    for (const plan of quick
      ? [groups(`idleg${size}`, size, 10)]
      : [loners(`idle${size}`, size), groups(`idleg${size}`, size, 10)]) {
      await prefill(bench, plan);
      const metric = `${size} sockets${plan.rooms.length > 0 ? ', each in a group of 10' : ''}`;
      await rounds(bench, 'idle', timesOf(bench), opens, async (running, server) => {
        const before = await baseline(bench, running, plan);
        const accounts = await running.accounts(plan);
        const { wire, port } = running;
        const report = await bench.load.open({ wire, port, accounts, atOnce: logins });
        if (report.failed > 0) throw new Error(`${report.failed} logins failed: ${report.firstFailure}`);
        await pause(settleMs);
        const each = (rssOf([running.gateway]) - before) / size;
        bench.results.add('idle', server.name, metric, 'KB', each);
        bench.say(`idle ${server.name}: ${metric}: ${format(each)} KB each`);
      });
    }
}

export async function storm(bench: Bench): Promise<void> {
  const { users, quick } = bench.options;
  const size = quick ? users * 2 : users * 10;
  const plan = groups(`storm${size}`, size, 10);
  await prefill(bench, plan);
  await rounds(bench, 'storm', timesOf(bench), opens, async (running, server) => {
    const add = (metric: string, unit: string, value: number) =>
      bench.results.add('storm', server.name, metric, unit, value);
    const accounts = await running.accounts(plan);
    const { wire, port } = running;
    const steady = await bench.load.open({ wire, port, accounts, atOnce: logins });
    if (steady.failed > 0) throw new Error(`${steady.failed} logins failed: ${steady.firstFailure}`);
    add('logins, 100 at a time', '/s', (size * 1_000) / steady.ms);
    await pause(settleMs);
    const before = rssOf([running.gateway]);
    const all = await bench.load.open({ wire, port, accounts, atOnce: 0 });
    add(`all ${size} at once`, '/s', (all.opened * 1_000) / all.ms);
    add('until the last', 's', all.ms / 1_000);
    add('failed', '', all.failed);
    if (all.failed > 0)
      bench.results.note(`storm, ${server.name}: ${all.failed} failed: ${all.firstFailure}`);
    await pause(settleMs);
    const after = rssOf([running.gateway]);
    add('RSS afterwards to before', '×', after / before);
    bench.say(
      `storm ${server.name}: ${format((size * 1_000) / steady.ms)} logins/s; ${size} at once in ${format(all.ms / 1_000)} s, ` +
        `${all.failed} failed, RSS ${format(before / 1_024)} to ${format(after / 1_024)} MB`,
    );
  });
}
