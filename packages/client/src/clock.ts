export interface Clock {
  now(): number;
  setTimeout(fn: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** Timers above 2^31-1 ms fire at once (Node, browsers): clamp them. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (fn, ms) => setTimeout(fn, Math.min(ms, 2 ** 31 - 1)),
  clearTimeout: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
};

/** One timer that can be moved and cleared. */
export class Timer {
  #clock: Clock;
  #handle: unknown;
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  get pending(): boolean {
    return this.#handle !== undefined;
  }
  set(ms: number, fn: () => void): void {
    this.clear();
    this.#handle = this.#clock.setTimeout(() => {
      this.#handle = undefined;
      fn();
    }, ms);
  }
  clear(): void {
    if (this.#handle === undefined) return;
    this.#clock.clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}
