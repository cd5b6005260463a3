import type { Clock } from '../src/clock.ts';

/** Lets everything that is ready to run, run. */
export const settle = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Time that moves only when told; between timers, promises run to their end. */
export class FakeClock implements Clock {
  time = Date.parse('2026-01-01T00:00:00Z');
  #timers = new Map<number, { at: number; fn: () => void }>();
  #next = 1;
  /** By how much somebody has set the clock: timers do not notice. */
  set = 0;
  now(): number {
    return this.time + this.set;
  }
  setTimeout(fn: () => void, ms: number): number {
    this.#timers.set(this.#next, { at: this.time + Math.max(0, ms), fn });
    return this.#next++;
  }
  clearTimeout(handle: unknown): void {
    this.#timers.delete(handle as number);
  }
  get pending(): number {
    return this.#timers.size;
  }
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      let first: [number, { at: number; fn: () => void }] | null = null;
      for (const entry of this.#timers) if (!first || entry[1].at < first[1].at) first = entry;
      if (!first || first[1].at > end) break;
      this.#timers.delete(first[0]);
      this.time = first[1].at;
      first[1].fn();
      await settle();
    }
    this.time = end;
  }
}

/** mulberry32: the same seed gives the same run. */
export function seeded(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
