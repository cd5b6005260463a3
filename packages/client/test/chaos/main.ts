import { parseArgs } from 'node:util';
import { chaos } from './run.ts';
import type { ChaosOptions, Outcome } from './run.ts';
import { storageRuns } from '../../../server/test/history/chaos/main.ts';

/**
 * `npm run chaos -- [--seed N] [--clients N] [--nodes N] [--seconds N] [--minutes N]`: with `--minutes` again and again, each time with a
 * new seed, until so much time has passed.
 * `npm run chaos -- --kills [--count 100] [--messages 1000000] [--clients 200]`: nodes are killed, and nothing else, until so many kills and
 * so many acknowledged messages are reached.
 * `npm run chaos -- --storage [--only postgres|mariadb|http] [--seed N] [--minutes 3] [--seconds 60]`: customers' own databases, with a
 * ledger of all that was acknowledged; the next seed follows until the minutes have passed.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    clients: { type: 'string' },
    kills: { type: 'boolean', default: false },
    count: { type: 'string', default: '100' },
    messages: { type: 'string', default: '1000000' },
    minutes: { type: 'string' },
    nodes: { type: 'string', default: '3' },
    only: { type: 'string' },
    seconds: { type: 'string' },
    storage: { type: 'boolean', default: false },
  },
});
const start = performance.now();
const elapsed = (): number => (performance.now() - start) / 1_000;
const log = (line: string): void => void process.stdout.write(`${elapsed().toFixed(1)} ${line}\n`);
const seeds = (): number => Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

if (values.storage) {
  const { minutes = '3', seconds = '60', only } = values;
  const given = { seed: seeds(), minutes: Number(minutes), seconds: Number(seconds), only };
  process.exit((await storageRuns(given, log)) ? 0 : 1);
}

const options: Omit<ChaosOptions, 'seed'> = {
  clients: Number(values.clients ?? (values.kills ? 200 : 60)),
  ...(values.kills ? { soak: { kills: Number(values.count), messages: Number(values.messages) } } : {}),
  nodes: Number(values.nodes),
  seconds: Number(values.seconds ?? 120),
  faultMs: 500,
  actMs: values.kills ? 100 : 800,
  log,
};
const total: Outcome = { faults: 0, acknowledged: 0, messages: 0, unreadCounts: 0 };
let runs = 0;
do {
  const seed = seeds();
  log(`chaos with --seed ${seed}`);
  const outcome = await chaos({ ...options, seed });
  // A difference, a double, a wrong order or a wrong count would have thrown.
  for (const name of Object.keys(total) as (keyof Outcome)[]) total[name] += outcome[name];
  runs++;
  log(
    `${runs} runs, ${total.faults} ${values.kills ? 'kills' : 'faults'}: ${total.acknowledged} acknowledged, ${total.messages} stored, ` +
      `0 lost, 0 doubled, 0 out of order, ${total.unreadCounts} unread counts exact, all clients agree`,
  );
} while (elapsed() < Number(values.minutes ?? 0) * 60);
process.exit(0);
