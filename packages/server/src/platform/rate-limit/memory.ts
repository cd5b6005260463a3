import type { Clock } from '../clock.ts';
import { isBucket } from './port.ts';
import type { RateLimiter, Verdict } from './port.ts';
import { bucketVerdict, windowVerdict } from './rules.ts';
import type { WindowState } from './rules.ts';

/** At most this many keys are remembered; the oldest go first, which can only forgive. */
const maxKeys = 200_000;

export function memoryRateLimiter(clock: Clock): RateLimiter {
  const buckets = new Map<string, number>();
  const windows = new Map<string, WindowState>();

  function keep<T>(map: Map<string, T>, key: string, value: T): void {
    map.delete(key);
    map.set(key, value);
    if (map.size > maxKeys) map.delete(map.keys().next().value!);
  }

  return {
    take(checks) {
      const now = clock.now();
      const verdicts: Verdict[] = [];
      const commits: (() => void)[] = [];
      for (const { key, limit } of checks) {
        if (isBucket(limit)) {
          const verdict = bucketVerdict(buckets.get(key) ?? 0, limit, now);
          verdicts.push(verdict);
          commits.push(() => keep(buckets, key, verdict.fullAt));
        } else {
          const verdict = windowVerdict(windows.get(key), limit, now);
          verdicts.push(verdict);
          commits.push(() => keep(windows, key, verdict.state));
        }
      }
      if (verdicts.every((v) => v.allowed)) for (const commit of commits) commit();
      return verdicts;
    },
  };
}
