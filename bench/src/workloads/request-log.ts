import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { skipIn } from '../skip.ts';
import { meanChange } from '../stats.ts';
import { restConnections, sends } from './store.ts';

/**
 * What the request log costs REST: the same service in short turns with and without it. The CPU time of the service and its PostgreSQL for
 * each request is compared with that of the turn beside it, and the mean of all pairs is given with its standard error.
 */

const kinds = ['sends', 'reads'] as const;
type Kind = (typeof kinds)[number];
type Mode = 'with' | 'without';

/** Pairs of turns for each round that is asked for; a turn is a quarter of a window. */
const pairs = 12;
const share = 4;

const reads = (): string[] =>
  tenants
    .slice(0, 10)
    .map(
      (t) =>
        `GET /v1/users?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${t.secretKey}\r\n\r\n`,
    );

export async function requestlog(bench: Bench): Promise<void> {
  await withRunning(bench, bench.freshParley('requestlog'), async (parley) => {
    const log = await skipIn(parley.gateway, '/features/logs/recorder.ts', '!keep');
    const requests = { sends: await sends(parley, bench.options.users, 0), reads: reads() };
    const turn = async (kind: Kind, mode: Mode): Promise<number> => {
      await log.set(mode === 'without');
      // Messages of their own for each turn.
      const since = `"clientMsgId":"${Date.now()}-`;
      return cpuOfTurn(
        bench,
        parley,
        requests[kind].map((request) => request.replace(/"clientMsgId":"\d+-/, since)),
      );
    };
    try {
      for (const kind of kinds) {
        // The first of each warms it up.
        for (const mode of ['with', 'without'] as const) await turn(kind, mode);
        const ratios: number[] = [];
        for (let i = 0; i < bench.options.rounds * pairs; i++) {
          // Whichever is first in one pair is second in the next.
          const order: Mode[] = i % 2 === 0 ? ['with', 'without'] : ['without', 'with'];
          const cpu = { with: 0, without: 0 };
          for (const mode of order) {
            cpu[mode] = await turn(kind, mode);
            bench.results.add(
              'requestlog',
              'parley',
              `${kind}: CPU per request ${mode} the log`,
              'µs',
              cpu[mode],
            );
          }
          ratios.push(cpu.with / cpu.without);
        }
        bench.say(`requestlog, ${kind}: the log costs ${meanChange(ratios)} CPU per request`);
      }
    } finally {
      log.close();
    }
  });
}

/** Microseconds of CPU per request. */
async function cpuOfTurn(bench: Bench, running: RunningParley, requests: string[]): Promise<number> {
  const run = await bench.load.http(
    {
      port: running.port,
      requests,
      connections: restConnections,
      warmMs: 500,
      windowMs: bench.options.windowMs / share,
    },
    running.roots,
  );
  if (run.refused > 0)
    bench.results.note(`requestlog: ${run.refused} refused, the first: ${run.firstRefusal}`);
  return (run.serverCpuMs * 1_000) / run.answered;
}
