import { table } from '../report/tables.ts';
import { formatSpread, format, median, ratios, spread } from '../stats.ts';
import type { Latency } from '../stats.ts';

/** What was measured of the rows, as a table. */

/** Before, at most during, and after the attack. */
export interface Usage {
  name: string;
  unit: string;
  before: number;
  during: number;
  after: number;
}

export interface Round {
  baseline: Latency;
  attack: Latency;
  after: Latency;
  /** The sends that began while the host of the machine took no processor. */
  undisturbed: { baseline: Latency; attack: Latency };
  /** Answers that told the victim to come again, and what was never answered. */
  refused: number;
  unanswered: number;
  did: string;
  /** p99 of logging in, ms, and the logins that failed meanwhile. */
  logins: { before: number; during: number; failed: number };
  usage: Usage[];
}

export interface Measured {
  id: string;
  what: string;
  /** What the times are of. */
  of: 'send' | 'webhook';
  rounds: Round[];
}

const both = (latencies: Latency[]): string =>
  `${formatSpread(spread(latencies.map((l) => l.p50)))} / ${formatSpread(spread(latencies.map((l) => l.p99)))}`;

/** In MB where a process is small, else without digits that mean nothing. */
const amount = (value: number): string => format(value >= 100 ? Math.round(value) : value);

export function usageText(rounds: readonly Round[]): string {
  return (rounds[0]?.usage ?? [])
    .map(({ name, unit }, i) => {
      const at = (key: 'before' | 'during' | 'after') => amount(median(rounds.map((r) => r.usage[i]![key])));
      return `${name} ${at('before')} → ${at('during')} → ${at('after')}${unit === '' ? '' : ` ${unit}`}`;
    })
    .join('; ');
}

function loginText(logins: Round['logins'][]): string {
  const of = (key: 'before' | 'during' | 'failed') => median(logins.map((l) => l[key]));
  const failed = of('failed') > 0 ? `, ${format(of('failed'))} failed` : '';
  return `${format(of('before'))} → ${format(of('during'))}${failed}`;
}

export const ratioOf = (rounds: readonly Round[], quantile: 'p50' | 'p99') =>
  ratios(
    rounds.map((r) => r.attack[quantile]),
    rounds.map((r) => r.baseline[quantile]),
  );

/** What is left of the sends without those that began while the host took a processor. */
export function undisturbedText({ baseline, attack, undisturbed }: Round): string {
  const of = (all: Latency, left: Latency) =>
    `${format(left.p50)} / ${format(left.p99)} ms (${Math.round((100 * left.count) / all.count)} % of the sends)`;
  const times = undisturbed.attack.p99 / undisturbed.baseline.p99;
  return `while the host took no processor: ${of(baseline, undisturbed.baseline)} → ${of(attack, undisturbed.attack)}, p99 ${format(times)} ×`;
}

export function neighboursTable(measured: readonly Measured[]): string {
  return table(
    [
      '#',
      'What one tenant did',
      'Baseline p50 / p99, ms',
      'Meanwhile p50 / p99, ms',
      'p99 to baseline',
      'Afterwards p50 / p99, ms',
      'Logins p99, ms',
      'Refused',
      'Unanswered',
      'Resource',
      'Done',
    ],
    measured.map(({ id, what, of, rounds }) => [
      id,
      of === 'webhook' ? `${what} (webhooks measured)` : what,
      both(rounds.map((r) => r.baseline)),
      both(rounds.map((r) => r.attack)),
      `${formatSpread(ratioOf(rounds, 'p99'))} ×`,
      both(rounds.map((r) => r.after)),
      loginText(rounds.map((r) => r.logins)),
      format(median(rounds.map((r) => r.refused))),
      format(median(rounds.map((r) => r.unanswered))),
      usageText(rounds),
      rounds.at(-1)?.did ?? '',
    ]),
  );
}
