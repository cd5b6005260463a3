import { sleep, systemTimers } from '../clock.ts';
import type { Timers } from '../clock.ts';
import type { Logger } from '../logging.ts';

export interface Loop {
  start(): void;
  /** There may be work: look now, or once more right after the present turn. */
  poke(): void;
  /** Resolves when the present turn is over. */
  stop(): Promise<void>;
}

/**
 * Milliseconds between turns that find nothing, so that a job that is due but cannot be claimed does not make the
 * loop spin.
 */
const leastPauseMs = 5;
/** Milliseconds; see `rests`. */
const slowTurnMs = 10;
const restFactor = 4;
const longestRestMs = 500;

/**
 * Repeats `turn`, never twice at once. A turn returns how many milliseconds the next can wait (0: none, null: until
 * `poke`). A failed turn is logged and tried again after `pollMs`.
 */
export function createLoop(
  logger: Logger,
  name: string,
  pollMs: number,
  turn: () => Promise<number | null>,
  options: {
    /**
     * After a turn of more than 10 ms the loop rests for four times as long as it took, up to 500 ms: if the database is
     * slow, most of the time is left to those who wait for an answer, and the next turn takes more at once.
     */
    rests?: boolean;
    timers?: Timers;
  } = {},
): Loop {
  const { rests = false, timers = systemTimers } = options;
  let started = false;
  let stopped = false;
  let poked = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function run(): Promise<void> {
    while (!stopped) {
      poked = false;
      const begun = timers.monotonic();
      let pause: number | null;
      try {
        pause = await turn();
      } catch (error) {
        logger.warn({ err: error }, `${name}: failed, trying again`);
        pause = pollMs;
        poked = false;
      }
      const took = timers.monotonic() - begun;
      if (rests && took > slowTurnMs && !stopped)
        await sleep(timers, Math.min(restFactor * took, longestRestMs));
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
      // It was poked between the last turn and the end of the run.
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
