import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { chosen } from '../neighbours/attacks/all.ts';
import type { Row } from '../neighbours/attacks/all.ts';
import { measure, withServices } from '../neighbours/measure.ts';
import type { Plan } from '../neighbours/measure.ts';
import { neighboursTable, ratioOf, undisturbedText, usageText } from '../neighbours/table.ts';
import type { Measured, Round } from '../neighbours/table.ts';
import type { Parley } from '../servers/parley.ts';
import { format } from '../stats.ts';

/** What one tenant can do to another: `neighbours` takes one attack at a time, `abuse` all at once. */

export function neighbours(bench: Bench): Promise<void> {
  return withServices(bench, async (fresh) => {
    const parley = fresh('neighbours');
    const measured: Measured[] = [];
    for (const row of chosen(bench.options.only)) {
      const { id, what, webhooks } = row;
      const result: Measured = { id, what, of: webhooks ? 'webhook' : 'send', rounds: [] };
      for (let round = 0; round < bench.options.rounds; round++)
        try {
          // Endpoints stay, and their number is bounded: they get a store of their own.
          const server = webhooks ? fresh(`row${id}-${round}`) : parley;
          result.rounds.push(await measureRow(bench, row, server));
        } catch (error) {
          const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
          bench.results.note(`neighbours, row ${id} failed: ${why}`);
          bench.say(`row ${id}: ${error instanceof Error ? error.stack : String(error)}`);
        }
      if (result.rounds.length > 0) measured.push(result);
    }
    process.stdout.write(`\n${neighboursTable(measured)}\n`);
  });
}

async function measureRow(bench: Bench, row: Row, parley: Parley): Promise<Round> {
  const { windowMs } = bench.options;
  const { id, webhooks = false, resource } = row;
  const round = await measureOn(bench, parley, {
    label: `row ${id}`,
    webhooks,
    resource,
    baselineMs: windowMs,
    strikeMs: windowMs,
    afterMs: windowMs,
    prepare: (attacker, target) => attacker.ask('prepare', { id, target }),
    strike: async (attacker) => (await attacker.ask('strike', { id, ms: windowMs })).text,
  });
  const { baseline, attack, after, logins, did } = round;
  bench.say(
    `row ${id}: p50 ${format(baseline.p50)} → ${format(attack.p50)} → ${format(after.p50)} ms, ` +
      `p99 ${format(baseline.p99)} → ${format(attack.p99)} → ${format(after.p99)} ms; ` +
      `logins p99 ${format(logins.before)} → ${format(logins.during)} ms, ${logins.failed} failed; ` +
      `${usageText([round])}; ${did}`,
  );
  return round;
}

async function measureOn(bench: Bench, parley: Parley, how: Plan, apart?: Parley): Promise<Round> {
  let round: Round | undefined;
  await withRunning(bench, parley, async (running) => {
    if (!apart) round = await measure(bench, running, how);
    else
      await withRunning(bench, apart, async (struck) => {
        round = await measure(bench, running, how, struck);
      });
  });
  return round!;
}

/** What the victim may feel of all at once: its p99 to its baseline, and the memory a minute later to that before. */
const mostRatio = 5;
const mostMemory = 1.2;

export function abuse(bench: Bench): Promise<void> {
  const { windowMs, apart } = bench.options;
  const rows = chosen(bench.options.only);
  return withServices(bench, async (fresh) => {
    const plan: Plan = {
      label: 'abuse',
      webhooks: false,
      baselineMs: Math.min(30_000, windowMs),
      strikeMs: windowMs,
      afterMs: 60_000,
      // One after the other: later ones must not wait for what earlier ones do.
      prepare: async (attacker, target) => {
        for (const { id } of rows) await attacker.ask('prepare', { id, target });
      },
      strike: async (attacker, target) => {
        const one = async ({ id }: Row): Promise<void> => {
          const { text } = await attacker.ask('persist', { id, target, ms: windowMs });
          bench.say(`row ${id}: ${text}`);
        };
        await Promise.all(rows.map(one));
        return `all at once for ${windowMs / 1_000} s${apart ? ', to another service' : ''}`;
      },
    };
    const round = await measureOn(bench, fresh('abuse'), plan, apart ? fresh('abused') : undefined);
    const all: Measured = { id: 'all', what: 'all at once', of: 'send', rounds: [round] };
    process.stdout.write(`\n${neighboursTable([all])}\n${undisturbedText(round)}\n`);
    const ratio = ratioOf([round], 'p99').median;
    const memory = round.usage[0]!.after / round.usage[0]!.before;
    const met = (what: string, ok: boolean): void => {
      process.stdout.write(`${ok ? 'met' : 'NOT MET'}: ${what}\n`);
      if (!ok) bench.results.failed = true;
    };
    met('nothing lost, nothing twice, all in order', !bench.results.failed);
    met(`p99 of sends ${format(ratio)} times its baseline, at most ${mostRatio}`, ratio <= mostRatio);
    met(
      `memory a minute later ${format(memory)} times that before, at most ${mostMemory}`,
      memory <= mostMemory,
    );
  });
}
