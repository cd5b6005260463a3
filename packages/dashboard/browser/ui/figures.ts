/** Numbers as the pages write them, in English like their words. By hand: the browser's formatters take 80 ms of a slow machine to begin with. */

const rounded = (value: number, digits: number): number => Math.round(value * 10 ** digits) / 10 ** digits;

/** 12,345.67 */
export function plain(value: number, digits = 2): string {
  const [whole, rest] = String(rounded(value, digits)).split('.');
  return whole!.replaceAll(/\B(?=(\d{3})+$)/g, ',') + (rest === undefined ? '' : `.${rest}`);
}

const units: [name: string, size: number][] = [
  ['B', 1e9],
  ['M', 1e6],
  ['K', 1e3],
];

/** 12.3K; a number that would round to 1,000 of a unit becomes 1 of the next unit. */
export function compact(value: number): string {
  const [name, size] = units.find((unit) => value >= unit[1] * 0.99995) ?? ['', 1];
  return plain(value / size, 1) + name;
}

/** 4.2% */
export const percent = (share: number, digits = 1): string => `${plain(share * 100, digits)}%`;
