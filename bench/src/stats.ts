/** Latencies in buckets of 1 %: bounded memory whatever the run's length. */

const ratio = Math.log(1.01);
const buckets = 2_000; // up to 4.4e8 µs

export interface Latency {
  count: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  max: number;
}

export class Histogram {
  readonly #counts = new Float64Array(buckets);
  #count = 0;
  #max = 0;

  record(microseconds: number): void {
    const value = microseconds < 1 ? 1 : microseconds;
    const at = Math.min(buckets - 1, Math.round(Math.log(value) / ratio));
    this.#counts[at]!++;
    this.#count++;
    if (value > this.#max) this.#max = value;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#count = 0;
    this.#max = 0;
  }

  /** Microseconds; NaN without a sample. */
  quantile(q: number): number {
    if (this.#count === 0) return NaN;
    let left = Math.max(1, Math.ceil(q * this.#count));
    for (let at = 0; at < buckets; at++) {
      left -= this.#counts[at]!;
      if (left <= 0) return Math.min(this.#max, Math.exp(at * ratio));
    }
    return this.#max;
  }

  summary(): Latency {
    const ms = (us: number) => us / 1_000;
    return {
      count: this.#count,
      p50: ms(this.quantile(0.5)),
      p99: ms(this.quantile(0.99)),
      max: ms(this.#count === 0 ? NaN : this.#max),
    };
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.filter((v) => !Number.isNaN(v)).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

export interface Spread {
  median: number;
  low: number;
  high: number;
}

export const spread = (values: readonly number[]): Spread => {
  const known = values.filter((v) => !Number.isNaN(v));
  return {
    median: median(known),
    low: known.length === 0 ? NaN : Math.min(...known),
    high: known.length === 0 ? NaN : Math.max(...known),
  };
};

/** Round by round, so that what disturbed one round disturbs both sides of its ratio. */
export const ratios = (over: readonly number[], under: readonly number[]): Spread =>
  spread(over.slice(0, under.length).map((v, i) => v / under[i]!));

/** Three significant digits, thousands separated. */
export function format(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

export const formatSpread = (s: Spread): string =>
  s.low === s.high || Number.isNaN(s.median)
    ? format(s.median)
    : `${format(s.median)} (${format(s.low)}–${format(s.high)})`;

/** The mean of ratios as the change it stands for, with its standard error, in percent. */
export function meanChange(ratios: readonly number[]): string {
  const logs = ratios.map(Math.log);
  const mean = logs.reduce((sum, x) => sum + x, 0) / logs.length;
  const variance = logs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, logs.length - 1);
  const percent = (100 * Math.expm1(mean)).toFixed(1);
  return `${percent} % (± ${(100 * Math.sqrt(variance / logs.length)).toFixed(1)}, ${logs.length} pairs)`;
}
