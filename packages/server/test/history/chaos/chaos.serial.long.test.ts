import { test } from 'node:test';
import { seed } from '../../../../../scripts/seed.ts';
import { engines } from './customers.ts';
import { storageChaos } from './run.ts';

/** The small size; `npm run chaos -- --storage` is the large one. */
test(
  'docs/faults.md, Storage of customers’ own: nothing acknowledged is lost, doubled or of another version after cuts, stops, freezes, full disks and clocks apart',
  { timeout: 900_000 },
  async (t) => {
    await storageChaos({
      seed: seed('storage chaos'),
      engines,
      nodes: 1,
      moves: false,
      seconds: 15,
      actMs: 200,
      faultMs: 1_500,
      log: (line) => t.diagnostic(line),
    });
  },
);
