import { pause } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { cpuOf, usageOf } from '../procfs.ts';
import { format, Histogram } from '../stats.ts';
import type { MediaLoad } from './media-load.ts';

/**
 * The same crowd for every media server: in each call four send sound and a picture and all others watch, a few more at each step, until
 * packets are lost or late or the core that passes them on has nothing left.
 */

/** Calls of the crowd. */
export const crowds = 10;
export const crowdSize = 50;
const senders = 4;
const settleMs = 1_500;
const windowMs = 4_000;
const mostLoss = 0.01;
/** What waits in a server or was dropped by it leaves no gap in the sequence numbers. */
const mostLate = 0.05;
const fullCpu = 97;
/** From here on joins wait for the core, which says nothing of how long they take. */
const busyCpu = 60;

/** One who may take part. */
export interface Seat {
  /** Until media is connected: the answer is how many milliseconds it took. */
  join(): Promise<number>;
  /** Sound and a picture. */
  send(): Promise<void>;
  /** All that the others send. */
  receive(): Promise<void>;
}

export interface Side {
  server: 'parley' | 'livekit';
  /** By name; the first passes media on, on one core. */
  processes: Record<string, number>;
  /** `crowds` calls of `crowdSize`. */
  calls: Seat[][];
  /** How many that watch a step adds to each call. */
  stepSize: number;
}

export async function fill(bench: Bench, media: MediaLoad, side: Side): Promise<void> {
  const { server } = side;
  const add = (metric: string, unit: string, value: number): void =>
    bench.results.add('calls', server, metric, unit, value);
  const say = (text: string): void => bench.say(`calls, ${server}: ${text}`);
  const processes = Object.entries(side.processes);
  const worker = processes[0]![1];
  const memory = () => processes.map(([, pid]) => usageOf(pid).rss);
  const before = memory();

  const joins = new Histogram();
  const waiting = side.calls.map((call) => [...call]);
  let participants = 0;
  for (const call of waiting)
    for (const one of call.splice(0, senders)) {
      joins.record((await one.join()) * 1_000);
      await one.send();
      await one.receive().catch(() => undefined); // the first has nothing to receive
      participants++;
    }
  let full = 0;
  let best = { sources: 0, packets: 0, cpu: 0, load: 0 };
  for (;;) {
    if (full === 0)
      for (const call of waiting)
        for (const one of call.splice(0, side.stepSize)) {
          try {
            const ms = await one.join();
            if (best.cpu < busyCpu) joins.record(ms * 1_000);
            await one.receive();
            participants++;
          } catch (error) {
            const why = `a join failed: ${(error as Error).message}`;
            bench.results.note(`calls, ${server}: ${why}`);
            say(why);
          }
        }
    await pause(settleMs);
    await media.mark();
    const used = cpuOf([worker]).all;
    const loaded = cpuOf([media.pid]).all;
    await pause(windowMs);
    const cpu = ((cpuOf([worker]).all - used) / windowMs) * 100;
    const load = ((cpuOf([media.pid]).all - loaded) / windowMs) * 100;
    const { received, lost, sent, streams: sources } = await media.count();
    const loss = lost / Math.max(1, received + lost);
    // Half of what is sent and half of what is received is speech.
    const late = Math.max(0, 1 - received / ((sources * sent) / (crowds * senders * 2)));
    const packets = received / (windowMs / 1_000);
    say(
      `${sources} sources received, ${format(packets)} packets/s, lost ${(loss * 100).toFixed(2)} %, ` +
        `not yet there ${(late * 100).toFixed(1)} % of what was sent (${format(sent / (windowMs / 1_000))} packets/s), ` +
        `${processes[0]![0]} ${format(cpu)} % of a core, load generator ${format(load)} %`,
    );
    full = loss > mostLoss || late > mostLate || cpu > fullCpu ? full + 1 : 0;
    if (full === 0) best = { sources, packets, cpu, load };
    // Something else on the machine may have taken the core for a moment.
    if (full === 2) break;
    if (full === 0 && waiting[0]!.length === 0) {
      bench.results.note(`calls, ${server}: the core was not full with everybody in.`);
      break;
    }
  }
  const each = best.sources / best.cpu;
  add('received sources (consumers) on one core', '', best.sources);
  add('packets/s at that', '/s', best.packets);
  add('CPU at that', '%', best.cpu);
  add('load generator CPU at that', '%', best.load);
  add('received sources for each percent of the core', '', each);
  const joined = joins.summary();
  add('join to connected media p50', 'ms', joined.p50);
  add('join to connected media p99', 'ms', joined.p99);
  const after = memory();
  const grown = processes.map(([name], i) => ({ name, kB: (after[i]! - before[i]!) / participants }));
  for (const { name, kB } of grown) add(`memory per participant, ${name}`, 'kB', kB);
  say(
    `${best.sources} consumers at ${format(best.cpu)} % of a core, ${format(each)} for each percent; ` +
      `join p50 ${format(joined.p50)} p99 ${format(joined.p99)} ms of ${joined.count}; ` +
      `of ${participants} participants each takes ${grown.map(({ name, kB }) => `${format(kB)} kB in the ${name}`).join(', ')}`,
  );
}
