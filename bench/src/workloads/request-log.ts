import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { format, median } from '../stats.ts';
import { restConnections, sends } from './store.ts';

/**
 * What the request log costs REST: two services with stores of their own, one that keeps it and one that does not, both running. They are
 * measured in short turns, and each turn is compared with the one right before it: a machine that is slower for a while is so for both.
 * The CPU time of the service and its PostgreSQL for each request says it best.
 */

const kinds = ['sends', 'reads'] as const;
type Kind = (typeof kinds)[number];
interface Turn {
  cpu: number;
  rate: number;
}

/** Pairs of turns for each round that is asked for; a turn is a quarter of a window. */
const pairs = 6;
const share = 4;

const reads = (): string[] =>
  tenants
    .slice(0, 10)
    .map(
      (t) =>
        `GET /v1/users?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${t.secretKey}\r\n\r\n`,
    );

export async function requestlog(bench: Bench): Promise<void> {
  const [on, off] = (['on', 'off'] as const).map((log) =>
    bench.freshParley(`requestlog-${log}`, { CHAT_REQUEST_LOG: log }),
  ) as [ReturnType<Bench['freshParley']>, ReturnType<Bench['freshParley']>];
  await withRunning(bench, on, (withLog) =>
    withRunning(bench, off, async (without) => {
      for (const kind of kinds) await compare(bench, kind, withLog, without);
    }),
  );
}

async function compare(
  bench: Bench,
  kind: Kind,
  withLog: RunningParley,
  without: RunningParley,
): Promise<void> {
  // The first of each warms it up.
  for (const running of [withLog, without]) await turn(bench, kind, running);
  const ratios: Turn[] = [];
  const costs: number[] = [];
  for (let i = 0; i < bench.options.rounds * pairs; i++) {
    // Whoever is first in one pair is second in the next.
    const first = await turn(bench, kind, i % 2 === 0 ? withLog : without);
    const second = await turn(bench, kind, i % 2 === 0 ? without : withLog);
    const [a, b] = i % 2 === 0 ? [first, second] : [second, first];
    ratios.push({ cpu: a.cpu / b.cpu, rate: a.rate / b.rate });
    costs.push(b.cpu);
    bench.results.add('requestlog', 'parley', `${kind}: CPU per request with the log`, 'µs', a.cpu);
    bench.results.add('requestlog', 'parley', `${kind}: CPU per request without`, 'µs', b.cpu);
  }
  const cpu = ratios.map((r) => r.cpu).sort((a, b) => a - b);
  bench.say(
    `requestlog, ${kind}: the log costs ${percent(median(cpu))} CPU per request ` +
      `(the middle half of ${cpu.length} pairs: ${percent(quantile(cpu, 0.25))} to ${percent(quantile(cpu, 0.75))}; ` +
      `without it ${format(median(costs))} µs), and the rate is ${percent(median(ratios.map((r) => r.rate)))}`,
  );
}

/** One turn of a service. */
async function turn(bench: Bench, kind: Kind, running: RunningParley): Promise<Turn> {
  const requests = kind === 'sends' ? await sends(running, bench.options.users, 0) : reads();
  const run = await bench.load.http(
    {
      ...{ port: running.port, requests, connections: restConnections },
      ...{ warmMs: 500, windowMs: bench.options.windowMs / share },
    },
    running.roots,
  );
  if (run.refused > 0)
    bench.results.note(`requestlog: ${run.refused} refused, the first: ${run.firstRefusal}`);
  return { cpu: (run.serverCpuMs * 1_000) / run.answered, rate: run.answered / run.seconds };
}

const quantile = (sorted: number[], at: number): number => sorted[Math.floor((sorted.length - 1) * at)]!;
const percent = (ratio: number): string => `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`;
