import { isBucket } from './port.ts';
import type { RateLimiter, Verdict } from './port.ts';
import { bucketVerdict, givenBack, owed, windowVerdict } from './rules.ts';
import type { WindowState } from './rules.ts';

/**
 * At most this many keys are remembered. Those unused for the longest time are forgotten first, which can only allow
 * more.
 */
const maxKeys = 200_000;

/** The keys used last, in two halves: when the young half is full, it becomes the old one. */
class Recent<T> {
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  get(key: string): T | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: T): void {
    this.#young.set(key, value);
    if (this.#young.size < maxKeys / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
  }
}

export function memoryRateLimiter(clock: { now(): number }): RateLimiter {
  const buckets = new Recent<number>();
  const windows = new Recent<WindowState>();

  return {
    take(checks) {
      const now = clock.now();
      const verdicts: (Verdict & { fullAt?: number; state?: WindowState })[] = [];
      for (const { key, limit } of checks)
        verdicts.push(
          isBucket(limit)
            ? bucketVerdict(buckets.get(key) ?? 0, limit, now)
            : windowVerdict(windows.get(key), limit, now),
        );
      if (!verdicts.every((v) => v.allowed)) return verdicts;
      checks.forEach(({ key }, i) => {
        const { fullAt, state } = verdicts[i]!;
        if (state) windows.set(key, state);
        else buckets.set(key, fullAt!);
      });
      return verdicts;
    },
    giveBack(checks) {
      for (const { key, limit } of checks) {
        const state = windows.get(key);
        if (state) windows.set(key, givenBack(state, limit, clock.now()));
      }
    },
    owe(key, limit, cost) {
      buckets.set(key, owed(buckets.get(key) ?? 0, limit, cost, clock.now()));
    },
  };
}
