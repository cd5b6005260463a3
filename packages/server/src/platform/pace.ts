import type { Pressure } from './pressure.ts';
import { processPressure } from './pressure.ts';

export interface PaceOptions {
  /** Milliseconds between two batches under full pressure, for each item that arrives per millisecond. */
  msPerRate: number;
  /** Milliseconds between two batches at most. */
  mostMs: number | (() => number);
  now?: () => number;
  pressure?: Pressure | undefined;
}

/**
 * Decides when the next batch may begin. A batch costs less than its items one by one, but its items wait for it.
 * While the process has time to spare nothing waits. The higher the pressure, the further apart batches begin; the
 * limit depends on the rate of items, because few items gain little by waiting for each other.
 */
export class Pace {
  readonly #options: PaceOptions;
  readonly #now: () => number;
  readonly #pressure: Pressure;
  /** Items per millisecond, smoothed over `smoothMs`. */
  #rate = 0;
  #at = -Infinity;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#pressure = options.pressure ?? processPressure;
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
    const { msPerRate, mostMs } = this.#options;
    const most = Math.min(typeof mostMs === 'number' ? mostMs : mostMs(), this.#rate * msPerRate);
    const spacing = most * this.#pressure();
    return spacing < timerMs ? 0 : spacing;
  }

  /** Milliseconds until the next batch may begin; 0 means now. */
  wait(): number {
    const { spacing } = this;
    return spacing === 0 ? 0 : Math.max(0, this.#at + spacing - this.#now());
  }
}

const smoothMs = 100;
/** Milliseconds; a shorter wait is not worth a timer. */
const timerMs = 2;
