import { isBucket, keyName } from './port.ts';
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
      const names = checks.map(({ key }) => keyName(key));
      const verdicts: (Verdict & { fullAt?: number; state?: WindowState })[] = checks.map(({ limit }, i) =>
        isBucket(limit)
          ? bucketVerdict(buckets.get(names[i]!) ?? 0, limit, now)
          : windowVerdict(windows.get(names[i]!), limit, now),
      );
      if (!verdicts.every((v) => v.allowed)) return verdicts;
      names.forEach((name, i) => {
        const { fullAt, state } = verdicts[i]!;
        if (state) windows.set(name, state);
        else buckets.set(name, fullAt!);
      });
      return verdicts;
    },
    giveBack(checks) {
      for (const { key, limit } of checks) {
        const state = windows.get(keyName(key));
        if (state) windows.set(keyName(key), givenBack(state, limit, clock.now()));
      }
    },
    owe(key, limit, cost) {
      const name = keyName(key);
      buckets.set(name, owed(buckets.get(name) ?? 0, limit, cost, clock.now()));
    },
  };
}
