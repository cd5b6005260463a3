/**
 * Decides when the next batch may begin. A batch costs less than its items one by one, but its items wait for it. At
 * a low rate of items nothing waits; the higher the rate, the further apart batches begin, up to a limit.
 */
export class Pace {
  readonly #msPerRate: number;
  readonly #maxMs: () => number;
  readonly #now: () => number;
  /** Items per millisecond, smoothed over `smoothMs`. */
  #rate = 0;
  #at = -Infinity;

  /** @param msPerRate how far apart batches begin, in milliseconds, for each item that arrives per millisecond. */
  constructor(
    msPerRate: number,
    maxMs: number | (() => number),
    now: () => number = () => performance.now(),
  ) {
    this.#msPerRate = msPerRate;
    this.#maxMs = typeof maxMs === 'number' ? () => maxMs : maxMs;
    this.#now = now;
  }

  /** Must be called when a batch of this many items begins. */
  begin(items: number): void {
    const now = this.#now();
    const passed = Math.max(1, now - this.#at);
    const weight = Math.min(1, passed / smoothMs);
    this.#rate += (items / passed - this.#rate) * weight;
    this.#at = now;
  }

  /** How far apart batches begin at present, in milliseconds. */
  get spacing(): number {
    const spacing = Math.min(this.#maxMs(), this.#rate * this.#msPerRate);
    return spacing < leastMs ? 0 : spacing;
  }

  /** Milliseconds until the next batch may begin; 0 means now. */
  wait(): number {
    const { spacing } = this;
    return spacing === 0 ? 0 : Math.max(0, this.#at + spacing - this.#now());
  }
}

const smoothMs = 100;
/** Milliseconds; a shorter wait is not worth a timer. */
const leastMs = 4;
