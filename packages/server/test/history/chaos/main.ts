import { engines } from './customers.ts';
import type { EngineName } from './customers.ts';
import { storageChaos } from './run.ts';
import type { StorageOutcome } from './run.ts';

/** `npm run chaos -- --storage`: again and again, each time with the next seed, until so much time has passed. */
export async function storageRuns(
  given: { seed: number; minutes: number; seconds: number; only: string | undefined },
  log: (line: string) => void,
): Promise<void> {
  const chosen = given.only === undefined ? engines : engines.filter((name) => name === given.only);
  if (chosen.length === 0) throw new Error(`--only is one of ${engines.join(', ')}.`);
  const total: StorageOutcome = {
    ...{ faults: 0, acknowledged: 0, changes: 0, pages: 0, unavailable: 0, givenUp: 0 },
  };
  const until = performance.now() + given.minutes * 60_000;
  let runs = 0;
  do {
    const seed = given.seed + runs;
    // One node and two in turns.
    const nodes = 1 + (seed % 2);
    log(`own storage: ${chosen.join(', ')}, ${nodes} nodes, --seed ${seed}`);
    const outcome = await storageChaos({
      ...{ seed, nodes, engines: chosen satisfies readonly EngineName[], seconds: given.seconds },
      ...{ actMs: 80, faultMs: 5_000, log },
    });
    // A message that is lost, doubled, out of order or of another version would have thrown.
    for (const name of Object.keys(total) as (keyof StorageOutcome)[]) total[name] += outcome[name];
    runs++;
    log(
      `${runs} runs, ${total.faults} faults: ${total.acknowledged} messages and ${total.changes} changes acknowledged, all there, once, in order; ` +
        `${total.pages} pages read meanwhile, ${total.unavailable} unavailable; ${total.givenUp} lost by the customers’ own restores`,
    );
  } while (performance.now() < until);
}
