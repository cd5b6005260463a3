import type { Load } from './load.ts';
import type { Options } from './options.ts';
import type { Results } from './results.ts';
import type { Parley } from './servers/parley.ts';
import type { Database } from './servers/postgres.ts';
import type { Running, Server, ServerName } from './servers/server.ts';

/** What every workload gets. */
export interface Bench {
  options: Options;
  load: Load;
  results: Results;
  servers: Server[];
  /** Set when Parley is among them. */
  parley: Parley | null;
  /** The peers' PostgreSQL, started when first asked for. */
  database(): Promise<Database>;
  /** A Parley with a store of its own; see `createParley`. */
  freshParley(name: string, env?: Record<string, string>, wrap?: readonly string[]): Parley;
  say(line: string): void;
}

export async function withRunning<R extends Running>(
  bench: Bench,
  server: { start(): Promise<R> },
  work: (running: R) => Promise<void>,
): Promise<void> {
  const running = await server.start();
  try {
    await work(running);
  } finally {
    await bench.load.close().catch(() => undefined);
    await running.stop();
  }
}

/** Interleaved rounds over the servers; one that fails is noted, and the others go on. */
export async function rounds(
  bench: Bench,
  workload: string,
  times: number,
  which: (name: ServerName) => boolean,
  work: (running: Running, server: Server, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < times; round++)
    for (const server of bench.servers.filter((s) => which(s.name)))
      try {
        await withRunning(bench, server, (running) => work(running, server, round));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        bench.results.note(`${workload}, ${server.label}, round ${round + 1} failed: ${why.split('\n')[0]}`);
        bench.say(`${workload} ${server.name}: ${why}`);
      }
}

/** Rounds of the workloads that --quick runs once. */
export const timesOf = (bench: Bench): number => (bench.options.quick ? 1 : bench.options.rounds);

export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
