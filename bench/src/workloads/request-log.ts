import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { format, median } from '../stats.ts';
import { restConnections, sends } from './store.ts';

/**
 * What the request log costs REST: two services with stores of their own, one that keeps it and one that does not, measured in turns. The
 * CPU time of the service and its PostgreSQL for each request says it best: other work on the machine does not change it much.
 */

const kinds = ['sends', 'reads'] as const;
type Kind = (typeof kinds)[number];
type Measured = Record<Kind, { cpu: number[]; rate: number[] }>;

const reads = (): string[] =>
  tenants
    .slice(0, 10)
    .map(
      (t) =>
        `GET /v1/users?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${t.secretKey}\r\n\r\n`,
    );

export async function requestlog(bench: Bench): Promise<void> {
  const servers = (['on', 'off'] as const).map((log) => ({
    log,
    parley: bench.freshParley(`requestlog-${log}`, { CHAT_REQUEST_LOG: log }),
    measured: { sends: { cpu: [], rate: [] }, reads: { cpu: [], rate: [] } } as Measured,
  }));
  for (let round = 0; round < bench.options.rounds; round++)
    // Whoever is first in one round is second in the next.
    for (const { log, parley, measured } of round % 2 === 0 ? servers : [...servers].reverse())
      await withRunning(bench, parley, async (running) => {
        for (const kind of kinds) await measure(bench, running, round, kind, measured, log);
      });
  const [on, off] = servers as [(typeof servers)[0], (typeof servers)[0]];
  for (const kind of kinds) {
    const cpu = [on, off].map((s) => median(s.measured[kind].cpu)) as [number, number];
    const rate = [on, off].map((s) => median(s.measured[kind].rate)) as [number, number];
    bench.say(
      `requestlog, ${kind}: CPU per request ${format(cpu[0])} µs with, ${format(cpu[1])} µs without (${percent(cpu[0] / cpu[1])}); ` +
        `${format(rate[0])}/s with, ${format(rate[1])}/s without (${percent(rate[0] / rate[1])})`,
    );
  }
}

const percent = (ratio: number): string => `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`;

async function measure(
  bench: Bench,
  running: RunningParley,
  round: number,
  kind: Kind,
  measured: Measured,
  log: string,
): Promise<void> {
  const { warmMs, windowMs, users } = bench.options;
  const requests = kind === 'sends' ? await sends(running, users, round) : reads();
  const run = await bench.load.http(
    { port: running.port, requests, connections: restConnections, warmMs, windowMs },
    running.roots,
  );
  if (run.refused > 0)
    bench.results.note(`requestlog: ${run.refused} refused, the first: ${run.firstRefusal}`);
  const cpu = (run.serverCpuMs * 1_000) / run.answered;
  const rate = run.answered / run.seconds;
  measured[kind].cpu.push(cpu);
  measured[kind].rate.push(rate);
  bench.results.add('requestlog', 'parley', `${kind}, log ${log}: CPU per request`, 'µs', cpu);
  bench.results.add('requestlog', 'parley', `${kind}, log ${log}`, '/s', rate);
  bench.say(`requestlog ${log}, ${kind}: ${format(cpu)} µs CPU per request, ${format(rate)}/s`);
}
