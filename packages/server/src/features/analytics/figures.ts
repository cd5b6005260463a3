import { analyticsFigures } from '@parley/protocol';
import type { AnalyticsFigures } from '@parley/protocol';
import type { Counts } from './sql.ts';

/** Turns counters, by name, into the figures that callers see. */

/** Adds counters up. Those whose name begins with `peak` are maxima, as in the store. */
export function summed(rows: readonly Counts[]): Counts {
  const sum: Counts = {};
  for (const row of rows)
    for (const [name, n] of Object.entries(row))
      sum[name] = name.startsWith('peak') ? Math.max(sum[name] ?? 0, n) : (sum[name] ?? 0) + n;
  return sum;
}

const ratio = (a: number, b: number, none: number): number => (b === 0 ? none : a / b);
const rounded = (n: number, digits = 3): number => Number(n.toFixed(digits));

/** The figures that are not simply the counter of the same name. */
const derived: Partial<Record<keyof AnalyticsFigures, (of: (name: string) => number) => number>> = {
  webhookSuccessRate: (of) => rounded(ratio(of('webhookSucceeded'), of('webhookAttempts'), 1), 4),
  avgAckMs: (of) => rounded(ratio(of('ackMs'), of('acks'), 0)),
  avgFanoutMs: (of) => rounded(ratio(of('fanoutMs'), of('fanouts'), 0)),
  callAnswerRate: (of) => rounded(Math.min(1, ratio(of('callsAnswered'), of('calls'), 0)), 4),
  callMinutes: (of) => rounded(of('callMs') / 60_000),
  avgCallSeconds: (of) => rounded(ratio(of('callSeconds'), of('callsEnded'), 0)),
};

export function figuresOf(counts: Counts): AnalyticsFigures {
  const of = (name: string): number => counts[name] ?? 0;
  return Object.fromEntries(
    analyticsFigures.map((name) => [name, derived[name]?.(of) ?? of(name)]),
  ) as AnalyticsFigures;
}
