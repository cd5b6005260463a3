import { once } from './once.ts';

const relative = once(() => new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' }));

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

const soonMs = 60_000;

/**
 * How far a moment is from now. What is a little ahead of us happened now: clocks differ by that much, and answers take
 * a while.
 */
export function distance(at: number, now: number): string {
  const seconds = Math.round((at - now > 0 && at - now < soonMs ? 0 : at - now) / 1_000);
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? units.at(-1)!;
  return relative().format(Math.trunc(seconds / size), unit);
}
