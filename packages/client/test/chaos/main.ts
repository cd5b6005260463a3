import { parseArgs } from 'node:util';
import { chaos } from './run.ts';

/** `npm run chaos -- [--seed N] [--clients N] [--nodes N] [--seconds N]` */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    clients: { type: 'string', default: '60' },
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
  clients: Number(values.clients),
  nodes: Number(values.nodes),
  seconds: Number(values.seconds),
  faultMs: 500,
  actMs: 800,
  log,
});
log(`${messages} messages through ${faults} faults: nothing lost, nothing doubled, all agree`);
process.exit(0);
