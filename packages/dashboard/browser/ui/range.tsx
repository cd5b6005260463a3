import type { ReactNode } from 'react';
import { FilterChoice } from './filter.tsx';

/** The ranges that reports offer; the address has the name, so that a shared one stays up to date. */

const ranges: Record<string, [label: string, days: number, granularity: 'hour' | 'day']> = {
  '': ['the last 30 days', 30, 'day'],
  '1d': ['the last 24 hours', 1, 'hour'],
  '7d': ['the last 7 days, by hour', 7, 'hour'],
  '90d': ['the last 90 days', 90, 'day'],
  '365d': ['the last year', 365, 'day'],
};

export function rangeInput(name: string): { from: string; granularity: 'hour' | 'day' } {
  const [, days, granularity] = ranges[name] ?? ranges['']!;
  const step = granularity === 'hour' ? 3_600_000 : 86_400_000;
  // The step that runs now counts: one less before it. Whole steps, so that the same question is asked for a while.
  const from = Math.floor(Date.now() / step) * step - days * 86_400_000 + step;
  return { from: new Date(from).toISOString(), granularity };
}

export const RangeChoice = (): ReactNode => (
  <FilterChoice
    name="range"
    label="Range"
    options={Object.entries(ranges).map(([value, [label]]) => [value, label])}
  />
);
