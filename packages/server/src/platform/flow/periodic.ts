import { sleep, systemTimers } from '../clock.ts';
import type { Timers } from '../clock.ts';
import type { Logger } from '../logging.ts';

export interface Periodic {
  start(): void;
  /** Runs the job now, or once more right after the present run; does nothing before the start. */
  wake(): void;
  /** Resolves when the present run is over. */
  stop(): Promise<void>;
}

/**
 * Milliseconds between two runs at least, unless the first returns 0 or is followed by `wake`: a job that is due but
 * cannot be claimed must not make it spin.
 */
const leastPauseMs = 5;
/** Milliseconds; see `rests`. */
const slowRunMs = 10;
const restFactor = 4;
const longestRestMs = 500;

/**
 * Runs `job` at once and then every `ms`, never twice at the same time. Nothing queues up: runs that are due meanwhile
 * are left out, and however often it is woken, one more run follows. A run may return how many milliseconds the next
 * one can wait (0: none; null: until it is due). A failure is logged, and the next run tries again.
 */
export function createPeriodic(
  ms: number,
  logger: Logger,
  name: string,
  job: () => Promise<void> | Promise<number | null>,
  options: {
    /**
     * After a run of more than 10 ms it rests for four times as long as the run took, up to 500 ms: if the database is
     * slow, most of the time is left to those who wait for an answer, and the next run takes more at once.
     */
    rests?: boolean;
    timers?: Timers;
  } = {},
): Periodic {
  const { rests = false, timers = systemTimers } = options;
  let started = false;
  let woken = false;
  let running: Promise<void> | undefined;
  let cancel = (): void => undefined;

  async function run(): Promise<void> {
    while (started) {
      woken = false;
      const begun = timers.monotonic();
      let pause: number | null | void = null;
      try {
        pause = await job();
      } catch (error) {
        logger.warn({ err: error }, `${name} failed`);
        woken = false;
      }
      const took = timers.monotonic() - begun;
      if (rests && took > slowRunMs && started)
        await sleep(timers, Math.min(restFactor * took, longestRestMs));
      if (pause === 0 || woken || !started) continue;
      const wait = pause === null || pause === undefined ? ms - (took % ms) : Math.min(ms, pause);
      cancel = timers.after(Math.max(leastPauseMs, wait), look);
      return;
    }
  }

  function look(): void {
    cancel();
    if (!started || running) return;
    running = run().finally(() => {
      running = undefined;
      // It was woken between the last run of the job and the end of this one.
      if (woken) look();
    });
  }

  return {
    start: () => {
      started = true;
      look();
    },
    wake: () => {
      woken = true;
      look();
    },
    stop: async () => {
      started = false;
      cancel();
      await running;
    },
  };
}
