import type { Logger } from '../logging.ts';

export interface Loop {
  start(): void;
  /** There may be work: look now, or again right after the look under way. */
  poke(): void;
  /** Waits for the turn under way. */
  stop(): Promise<void>;
}

/** A pause between looks that find nothing, so that being due without being claimable never spins. */
const leastPauseMs = 5;

/**
 * Repeats `turn`, never twice at once. A turn answers how many milliseconds it can wait for the next (0: go on at once,
 * null: until poked). A failed turn is logged and tried again after `pollMs`.
 */
export function createLoop(
  logger: Logger,
  name: string,
  pollMs: number,
  turn: () => Promise<number | null>,
): Loop {
  let started = false;
  let stopped = false;
  let poked = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    while (!stopped) {
      poked = false;
      let pause: number | null;
      try {
        pause = await turn();
      } catch (error) {
        logger.warn({ err: error }, `${name}: failed, trying again`);
        pause = pollMs;
        poked = false;
      }
      if (pause === 0 || poked || stopped) continue;
      timer = setTimeout(wake, pause === null ? pollMs : Math.min(pollMs, Math.max(leastPauseMs, pause)));
      return;
    }
  }

  function wake(): void {
    clearTimeout(timer);
    if (!started || stopped || running) return;
    running = run().finally(() => {
      running = undefined;
      // Poked between the last look and the end of the run.
      if (poked) wake();
    });
  }

  return {
    start: () => {
      started = true;
      wake();
    },
    poke: () => {
      poked = true;
      wake();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
