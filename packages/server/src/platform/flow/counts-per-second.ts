/**
 * Counts what happens to each key (an address, a caller) in the running second. It counts at most `keys` of them: what
 * happens to others meanwhile is not counted, which can only allow more.
 */
export class CountsPerSecond {
  readonly #keys: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #since = -Infinity;

  /** @param now milliseconds of a clock that never jumps. */
  constructor(keys: number, now: () => number) {
    this.#keys = keys;
    this.#now = now;
  }

  /** Counts one more, and returns how many there are now. */
  add(key: string): number {
    const count = this.of(key) + 1;
    if (this.#counts.size < this.#keys || this.#counts.has(key)) this.#counts.set(key, count);
    return count;
  }

  of(key: string): number {
    const now = this.#now();
    if (now - this.#since >= 1_000) {
      this.#counts.clear();
      this.#since = now;
    }
    return this.#counts.get(key) ?? 0;
  }
}
