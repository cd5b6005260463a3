const units: [name: string, seconds: number][] = [
  ['day', 86_400],
  ['hr.', 3_600],
  ['min.', 60],
  ['sec.', 1],
];

const soonMs = 60_000;

/**
 * How far a moment is from now. What is a little ahead of us happened now: clocks differ by that much, and answers take
 * a while.
 */
export function distance(at: number, now: number): string {
  const seconds = Math.round((at - now > 0 && at - now < soonMs ? 0 : at - now) / 1_000);
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? units.at(-1)!;
  const count = Math.trunc(seconds / size);
  if (count === 0) return 'now';
  if (unit === 'day' && Math.abs(count) === 1) return count < 0 ? 'yesterday' : 'tomorrow';
  const many = `${Math.abs(count)} ${unit === 'day' ? 'days' : unit}`;
  return count < 0 ? `${many} ago` : `in ${many}`;
}
