import { rounds } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { groups } from '../servers/server.ts';
import { format } from '../stats.ts';
import { chat, enter, record } from './paced.ts';

/**
 * The most that a server acknowledges: twice the users of `send`, whose pace is raised step by step until more pressure brings no
 * more. With twice the users no pace comes near what Parley lets one user send (10/s, 300/min, plans#rates); all servers get the
 * same. Then half of it, for the latency there.
 */

const paces = [300, 205, 150, 110];
/** A step that brings less than this much more is the last. */
const gain = 1.03;

export function max(bench: Bench): Promise<void> {
  const plan = groups('max', bench.options.users * 2, 10);
  const warmMs = 1_000;
  const windowMs = Math.max(1_000, bench.options.windowMs / 2);
  return rounds(bench, 'max', bench.options.rounds, chat, async (running, server) => {
    await enter(bench, running, plan);
    let best = 0;
    let bestRun;
    for (const paceMs of bench.options.quick ? paces.slice(1) : paces) {
      const run = await bench.load.run({ paceMs, burst: 1, warmMs, windowMs }, running.roots);
      const rate = run.acked / run.seconds;
      bench.say(
        `max ${server.name}: ${format(rate)}/s at a pace of ${paceMs} ms, ack p99 ${format(run.ack.p99)} ms`,
      );
      const enough = rate < best * gain;
      if (rate > best) {
        best = rate;
        bestRun = run;
      }
      if (enough) break;
    }
    if (!bestRun) throw new Error('nothing was acknowledged');
    record(bench, 'max', server.name, bestRun, 10);
    if (bench.options.quick && server.name !== 'parley') return;
    const paceMs = (plan.users * 1_000) / (best / 2);
    const half = await bench.load.run({ paceMs, burst: 1, warmMs, windowMs }, running.roots);
    record(bench, 'half', server.name, half, 10);
  });
}
