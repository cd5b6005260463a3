import { it } from 'node:test';
import { chaos } from './run.ts';

/** The small size; `npm run chaos` is the large one. */
it(
  'SPEC 4, sync procedure: 20 clients, faulty networks, killed nodes, Redis and PostgreSQL; in the end all agree',
  { timeout: 420_000 },
  async (t) => {
    const seed = Number(process.env['CHAOS_SEED'] ?? Math.floor(Math.random() * 2 ** 32));
    t.diagnostic(`seed ${seed}: replay with CHAOS_SEED=${seed}`);
    process.stdout.write(`chaos seed ${seed}\n`);
    await chaos({
      seed,
      clients: 20,
      nodes: 2,
      seconds: 15,
      faultMs: 700,
      actMs: 900,
      log: (line) => t.diagnostic(line),
    });
  },
);
