import { engines } from './customers.ts';
import { storageChaos } from './run.ts';
import type { StorageOutcome } from './run.ts';

/**
 * `npm run chaos -- --storage`: again and again, each time with the next seed, until so much time has passed. Returns whether all was well.
 */
export async function storageRuns(
  given: { seed: number; minutes: number; seconds: number; only: string | undefined },
  log: (line: string) => void,
): Promise<boolean> {
  const chosen = given.only === undefined ? engines : engines.filter((name) => name === given.only);
  if (chosen.length === 0) throw new Error(`--only is one of ${engines.join(', ')}.`);
  const total: StorageOutcome = {
    faults: 0,
    acknowledged: 0,
    changes: 0,
    pages: 0,
    unavailable: 0,
    givenUp: 0,
    cold: 0,
  };
  const until = performance.now() + given.minutes * 60_000;
  const failed: number[] = [];
  let runs = 0;
  do {
    const seed = given.seed + runs++;
    // One node and two in turns.
    const nodes = 1 + (seed % 2);
    log(`own storage: ${chosen.join(', ')}, ${nodes === 1 ? 'one node' : 'two nodes'}, --seed ${seed}`);
    try {
      const outcome = await storageChaos({
        seed,
        nodes,
        engines: chosen,
        seconds: given.seconds,
        moves: true,
        actMs: 80,
        faultMs: 5_000,
        log,
      });
      for (const name of Object.keys(total) as (keyof StorageOutcome)[]) total[name] += outcome[name];
    } catch (error) {
      failed.push(seed);
      log(`FAILED ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
    log(
      `${runs - failed.length} runs, ${total.faults} faults: ${total.acknowledged} messages and ${total.changes} changes acknowledged, all there, ` +
        `once, in order, in their last version; ${total.cold} only with customers at the end; ${total.pages} pages read meanwhile, ` +
        `${total.unavailable} unavailable; ${total.givenUp} messages lost by customers’ own restores`,
    );
    if (failed.length > 0)
      log(`${failed.length} runs failed: ${failed.map((n) => `--seed ${n}`).join(', ')}`);
  } while (performance.now() < until);
  return failed.length === 0;
}
