import { parseArgs } from 'node:util';
import { chaos } from './run.ts';

/**
 * `npm run chaos -- [--seed N] [--clients N] [--nodes N] [--seconds N]`
 * `npm run chaos -- --kills [--count 100] [--messages 1000000] [--clients 200]`: nodes are killed, and nothing else, until so many kills and
 * so many acknowledged messages are reached.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    clients: { type: 'string' },
    kills: { type: 'boolean', default: false },
    count: { type: 'string', default: '100' },
    messages: { type: 'string', default: '1000000' },
    nodes: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '120' },
  },
});
const seed = Number(values.seed);
process.stdout.write(`chaos with --seed ${seed}\n`);
const start = Date.now();
const log = (line: string): void =>
  void process.stdout.write(`${((Date.now() - start) / 1000).toFixed(1)} ${line}\n`);
const { messages, faults } = await chaos({
  seed,
  clients: Number(values.clients ?? (values.kills ? 200 : 60)),
  ...(values.kills ? { soak: { kills: Number(values.count), messages: Number(values.messages) } } : {}),
  nodes: Number(values.nodes),
  seconds: Number(values.seconds),
  faultMs: 500,
  actMs: values.kills ? 150 : 800,
  log,
});
log(`${messages} messages through ${faults} faults: nothing lost, nothing doubled, all agree`);
process.exit(0);
