import { it } from 'node:test';
import { chaos } from './run.ts';
import { seed } from '../../../../scripts/seed.ts';

/** The small size; `npm run chaos` is the large one. */
it(
  'sdk#procedure: 20 clients, faulty networks, killed nodes, Redis and PostgreSQL; in the end all agree',
  { timeout: 900_000 },
  async (t) => {
    await chaos({
      seed: seed('chaos'),
      clients: 20,
      nodes: 2,
      seconds: 15,
      faultMs: 700,
      actMs: 900,
      log: (line) => t.diagnostic(line),
    });
  },
);
