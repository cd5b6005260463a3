/**
 * Things done together cost less than one by one, and somebody waits for them meanwhile. A pace finds the balance: when little
 * happens nothing waits; the more there is, the longer is the time between two goes, up to a limit.
 */
export class Pace {
  readonly #msPerRate: number;
  readonly #maxMs: () => number;
  readonly #now: () => number;
  /** Items per millisecond, smoothed over `smoothMs`. */
  #rate = 0;
  #at = -Infinity;

  /** @param msPerRate the wait for each item per millisecond. */
  constructor(
    msPerRate: number,
    maxMs: number | (() => number),
    now: () => number = () => performance.now(),
  ) {
    this.#msPerRate = msPerRate;
    this.#maxMs = typeof maxMs === 'number' ? () => maxMs : maxMs;
    this.#now = now;
  }

  /** One go begins, with so many items. */
  begin(items: number): void {
    const now = this.#now();
    const passed = Math.max(1, now - this.#at);
    const weight = Math.min(1, passed / smoothMs);
    this.#rate += (items / passed - this.#rate) * weight;
    this.#at = now;
  }

  /** Milliseconds between two goes. */
  get spacing(): number {
    const spacing = Math.min(this.#maxMs(), this.#rate * this.#msPerRate);
    return spacing < leastMs ? 0 : spacing;
  }

  /** Milliseconds until the next go may begin; 0: now. */
  wait(): number {
    const { spacing } = this;
    return spacing === 0 ? 0 : Math.max(0, this.#at + spacing - this.#now());
  }
}

const smoothMs = 100;
/** Less than this is not worth a timer. */
const leastMs = 4;
