import { randomBytes } from 'node:crypto';
import type { Bench } from '../bench.ts';
import { startRedis } from '../servers/redis.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import { format } from '../stats.ts';
import { record } from './paced.ts';

/**
 * One process beside two of one machine (CHAT_PROCESSES=2) and two nodes, which speak through Redis. Every other user is on the other node, so
 * five of a message's ten deliveries go through Redis. All use one PostgreSQL, and all of it shares the cores: what is
 * compared is the cost of a message, and not what more machines bring.
 */

const logins = 100;
const shapes = [
  { workload: 'nodes: one process', nodes: 1, processes: 1 },
  { workload: 'nodes: two processes', nodes: 1, processes: 2 },
  { workload: 'nodes: two nodes', nodes: 2, processes: 1 },
] as const;

export async function nodes(bench: Bench): Promise<void> {
  const database = await bench.database();
  const redis = await startRedis();
  if (!redis) {
    bench.results.note('nodes was left out: there is no redis-server.');
    return;
  }
  try {
    const plan = groups('nodes', bench.options.users, 10);
    const masterKey = randomBytes(32).toString('base64');
    for (let round = 0; round < bench.options.rounds; round++)
      for (const { workload, nodes: count, processes } of shapes) {
        const store = workload.replaceAll(/\W+/g, '_');
        await database.create(store);
        const env: Record<string, string> = {
          DATABASE_URL: database.url(store),
          CHAT_MASTER_KEY: masterKey,
          // Six connections of the log and ten others would not fit into one PostgreSQL for all.
          CHAT_DATABASE_POOL: '4',
          ...(count * processes > 1 ? { REDIS_URL: redis.url, CHAT_PROCESSES: String(processes) } : {}),
        };
        const running: RunningParley[] = [];
        try {
          for (let i = 0; i < count; i++) running.push(await bench.freshParley(`${store}-${i}`, env).start());
          await measure(bench, workload, running, {
            plan,
            roots: [...running.flatMap((r) => r.roots), database.pid, redis.pid],
          });
        } finally {
          await bench.load.close().catch(() => undefined);
          for (const one of running) await one.stop();
        }
      }
  } finally {
    await redis.stop();
  }
}

async function measure(
  bench: Bench,
  workload: string,
  running: RunningParley[],
  { plan, roots }: { plan: ReturnType<typeof groups>; roots: number[] },
): Promise<void> {
  const { warmMs, windowMs } = bench.options;
  const accounts = await running[0]!.accounts(plan);
  const { failed, firstFailure } = await bench.load.open({
    wire: 'parley',
    port: running.map(({ port }) => port),
    accounts,
    atOnce: logins,
  });
  if (failed > 0) throw new Error(`${failed} of ${accounts.length} could not log in: ${firstFailure}`);
  const run = await bench.load.run({ paceMs: 205, burst: 1, warmMs, windowMs }, roots);
  record(bench, workload, 'parley', run, 10);
  const pressed = await bench.load.run({ paceMs: 100, burst: 1, warmMs, windowMs }, roots);
  const rate = pressed.acked / pressed.seconds;
  bench.results.add(workload, 'parley', 'acknowledged under pressure', '/s', rate);
  bench.results.add(
    workload,
    'parley',
    'CPU per delivery under pressure',
    'µs',
    (pressed.serverCpuMs * 1_000) / pressed.delivered,
  );
  bench.say(`${workload}: ${format(rate)}/s under pressure`);
}
