import { rmSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { Load } from './load.ts';
import { describeMachine } from './machine.ts';
import { onRequest, parseOptions, usage, UsageError } from './options.ts';
import type { Options, WorkloadName } from './options.ts';
import { writePage } from './report/page.ts';
import { renderSummary } from './report/summary.ts';
import { merged, Results } from './results.ts';
import type { ResultsFile } from './results.ts';
import { createServers } from './servers/all.ts';
import { analytics } from './workloads/analytics.ts';
import { calls } from './workloads/calls.ts';
import { max } from './workloads/max.ts';
import { abuse, neighbours } from './workloads/neighbours.ts';
import { nodes } from './workloads/nodes.ts';
import { bigrooms, direct, light, send } from './workloads/paced.ts';
import { reactions } from './workloads/reactions.ts';
import { requestlog } from './workloads/request-log.ts';
import { retention } from './workloads/retention.ts';
import { sink } from './workloads/sink.ts';
import { soak } from './workloads/soak.ts';
import { idle, storm } from './workloads/sockets.ts';
import { growth, history, list, rest, start } from './workloads/store.ts';

/** npm run bench: measures Parley beside its peers and its limits. See `usage`. */

const workloads: Record<WorkloadName, (bench: Bench) => Promise<void>> = {
  start,
  send,
  max,
  light,
  bigrooms,
  direct,
  idle,
  storm,
  rest,
  list,
  history,
  growth,
  analytics,
  neighbours,
  abuse,
  requestlog,
  reactions,
  sink,
  calls,
  retention,
  soak,
  nodes,
};
/** These ask Parley alone. */
const ownOnly: WorkloadName[] = ['start', 'rest', 'list', 'history', 'growth', ...onRequest];
const resultsPath = fileURLToPath(new URL('../results.json', import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  let options: Options;
  try {
    if (args.includes('--help')) {
      process.stdout.write(usage);
      return 0;
    }
    options = parseOptions(args);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return error instanceof UsageError || error instanceof TypeError ? 2 : 1;
  }
  const directory = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  process.once('exit', () => {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch {
      // interrupted, and something still writes there
    }
  });
  const load = new Load();
  const results = new Results();
  const servers = createServers(options, directory, results);
  try {
    const begin = performance.now();
    const say = (line: string) => {
      const seconds = Math.round((performance.now() - begin) / 1_000);
      process.stderr.write(`${String(seconds).padStart(5)} s  ${line}\n`);
    };
    const bench: Bench = { options, load, results, say, ...servers };
    for (const name of options.workloads) {
      if (!bench.parley && ownOnly.includes(name)) continue;
      if (performance.now() - begin > options.deadlineMs) {
        results.note(`${name} was left out: the time was up.`);
        continue;
      }
      try {
        await workloads[name](bench);
      } catch (error) {
        say(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        results.note(
          `${name} failed: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`,
        );
      }
    }
    const measured: ResultsFile = {
      at: new Date().toISOString(),
      machine: await describeMachine(),
      labels: Object.fromEntries([
        ...bench.servers.map((s) => [s.name, s.label]),
        ['postgres', 'PostgreSQL, one bare client'],
      ]) as Record<string, string>,
      rows: results.rows,
      notes: results.notes,
    };
    process.stdout.write(renderSummary(measured));
    if (options.out !== null) {
      const file = options.add
        ? merged(JSON.parse(await readFile(resultsPath, 'utf8')) as ResultsFile, measured)
        : measured;
      await writeFile(resultsPath, `${JSON.stringify(file, null, 1)}\n`);
      await writePage(file, options.out);
      say(`written: ${options.out}`);
    }
    return results.failed ? 1 : 0;
  } finally {
    await load.stop();
    await servers.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
