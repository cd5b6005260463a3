import { rounds, timesOf } from '../bench.ts';
import type { Bench } from '../bench.ts';
import type { Measured } from '../load.ts';
import type { RunReport } from '../load/messages.ts';
import { bigRooms, groups } from '../servers/server.ts';
import type { Plan, Running, ServerName } from '../servers/server.ts';
import { format } from '../stats.ts';

/** Workloads in which users send at a pace: send, light, bigrooms, direct. */

const logins = 100;

export async function enter(bench: Bench, running: Running, plan: Plan): Promise<void> {
  const accounts = await running.accounts(plan);
  const { wire, port } = running;
  const { failed, firstFailure } = await bench.load.open({ wire, port, accounts, atOnce: logins });
  if (failed > 0) throw new Error(`${failed} of ${accounts.length} could not log in: ${firstFailure}`);
}

/** @param fanout sockets that a message reaches. */
export function record(
  bench: Bench,
  workload: string,
  server: ServerName,
  run: Measured<RunReport>,
  fanout: number,
): void {
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add(workload, server, metric, unit, value);
  add('acknowledged', '/s', run.acked / run.seconds);
  add('deliveries', '/s', run.delivered / run.seconds);
  for (const [name, latency] of [['ack', run.ack] as const, ['delivery', run.delivery] as const])
    for (const q of ['p50', 'p99', 'max'] as const) add(`${name} ${q}`, 'ms', latency[q]);
  add('CPU per message', 'µs', (run.serverCpuMs * 1_000) / run.acked);
  add('CPU per delivery', 'µs', (run.serverCpuMs * 1_000) / run.delivered);
  if (run.databaseCpuMs > 0) add('database CPU per message', 'µs', (run.databaseCpuMs * 1_000) / run.acked);
  add('load generator CPU', '%', run.cpuMs / run.seconds / 10);
  const missing = run.total.acked * fanout - run.total.delivered;
  if (missing > 0) bench.results.note(`${workload}, ${server}: ${missing} deliveries did not arrive.`);
  if (run.errors > 0)
    bench.results.note(`${workload}, ${server}: ${run.errors} errors, the first: ${run.firstError}`);
  bench.say(
    `${workload} ${server}: ${format(run.acked / run.seconds)} acknowledged/s, ack p50 ${format(run.ack.p50)} p99 ` +
      `${format(run.ack.p99)} ms, ${format((run.serverCpuMs * 1_000) / run.delivered)} µs CPU per delivery, ` +
      `load generator ${format(run.cpuMs / run.seconds / 10)} %`,
  );
}

interface Paced {
  /** Only once with --quick. */
  once?: boolean;
  workload: string;
  plan: Plan;
  paceMs: number;
  burst?: number;
  which?: (name: ServerName) => boolean;
}

async function paced(
  bench: Bench,
  { workload, plan, paceMs, burst = 1, which = chat, once = false }: Paced,
): Promise<void> {
  const { warmMs, windowMs } = bench.options;
  const fanout = plan.rooms[0]!.length;
  const times = once ? timesOf(bench) : bench.options.rounds;
  await rounds(bench, workload, times, which, async (running, server) => {
    await enter(bench, running, plan);
    const before = (await running.stored?.()) ?? 0;
    const run = await bench.load.run({ paceMs, burst, warmMs, windowMs }, running.roots);
    record(bench, workload, server.name, run, fanout);
    const kept = ((await running.stored?.()) ?? 0) - before;
    if (server.durable && kept < run.total.acked)
      bench.results.note(
        `${workload}, ${server.label}: ${run.total.acked} acknowledged, only ${kept} stored.`,
      );
  });
}

/** `raw` stands for the limit of big rooms only. */
export const chat = (name: ServerName): boolean => name !== 'raw';

/** About five messages a second from each; a user may send 300 a minute (plans#rates), which a window does not reach. */
export const send = (bench: Bench): Promise<void> =>
  paced(bench, { workload: 'send', plan: groups('send', bench.options.users, 10), paceMs: 205 });

/** 200 messages a second in all. */
export const light = (bench: Bench): Promise<void> =>
  paced(bench, {
    workload: 'light',
    plan: groups('light', Math.max(20, bench.options.users / 5), 10),
    paceMs: 1_000,
    once: true,
  });

/** One sender a room, four messages at a time, eight a second: what a user may send (plans#rates) and frames can coalesce. */
export function bigrooms(bench: Bench): Promise<void> {
  const members = Math.min(500, bench.options.users / 2);
  return paced(bench, {
    workload: 'bigrooms',
    plan: bigRooms('big', members, Math.min(20, members)),
    paceMs: 500,
    once: true,
    burst: 4,
    // XMPP tells every member of every other's arrival: millions of presences before the first message.
    which: (name) => !['ejabberd', 'prosody', 'socketio-row'].includes(name),
  });
}

export const direct = (bench: Bench): Promise<void> =>
  paced(bench, {
    workload: 'direct',
    plan: groups('direct', bench.options.users, 2, true),
    paceMs: 205,
    which: (name) => chat(name) && name !== 'prosody' && name !== 'socketio-row',
  });
