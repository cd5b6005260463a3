import { performance } from 'node:perf_hooks';

/**
 * How much the process lacks time, from 0 to 1: 0 while its event loop has time to spare, 1 when it has none. Code that can save work by
 * letting items wait for each other asks for it: work that fits into spare time costs nobody anything, but waiting costs milliseconds. If
 * PostgreSQL or other programs take the processor's time, the loop's own work takes longer, and the pressure rises too.
 */
export type Pressure = () => number;

/** Milliseconds between two looks at the loop at least; the share is smoothed over four times as long. */
const lookMs = 25;

/** The share of time in which the loop is busy: up to `easy` the pressure is 0, from `full` on it is 1. */
const easy = 0.75;
const full = 0.97;

/** @param loop returns for how long the event loop has been idle and active so far, in milliseconds. */
export function createPressure(loop: () => { idle: number; active: number }): Pressure {
  let last = loop();
  let busy = 0;
  return () => {
    const { idle, active } = loop();
    const passed = idle - last.idle + active - last.active;
    if (passed >= lookMs) {
      const now = (active - last.active) / passed;
      busy += (now - busy) * Math.min(1, passed / (4 * lookMs));
      last = { idle, active };
    }
    return Math.min(1, Math.max(0, (busy - easy) / (full - easy)));
  };
}

/** The pressure on this process. */
export const processPressure = createPressure(() => performance.eventLoopUtilization());
