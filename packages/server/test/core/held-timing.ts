import type { Timing } from '../../src/platform/timing.ts';

export interface HeldTiming extends Timing {
  /** Lets so much time pass: whoever sleeps less wakes up at its time and does all that needs no time. */
  pass(ms: number): Promise<void>;
  /** How long each sleeper still sleeps. */
  sleeping(): number[];
}

/** Time that stands still until the test lets it pass. */
export function heldTiming(): HeldTiming {
  let now = 0;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    now: () => now,
    sleep: (ms) => new Promise((wake) => sleepers.add({ at: now + ms, wake })),
    sleeping: () => [...sleepers].map((s) => s.at - now),
    pass: async (ms) => {
      const end = now + ms;
      for (;;) {
        await rest();
        const at = Math.min(...[...sleepers].map((s) => s.at));
        if (at > end) break;
        now = at;
        for (const sleeper of [...sleepers].filter((s) => s.at === at)) {
          sleepers.delete(sleeper);
          sleeper.wake();
        }
      }
      now = end;
      await rest();
    },
  };
}
