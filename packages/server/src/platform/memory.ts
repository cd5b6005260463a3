import v8 from 'node:v8';
import type { Timers } from './clock.ts';

/** What a process uses at one moment. */
export interface Usage {
  /** Bytes that the system counts as ours. */
  resident: number;
  /** Bytes of the heap and of buffers: those that V8 knows to be in use, or soon to be. */
  known: number;
  /** The share of the time since the last look in which there was something to do, 0 to 1. */
  busy: number;
}

/** So much may be resident beyond what is known, and beyond what it was when it was least. */
const keptBytes = 64 * 1024 * 1024;
const calm = 0.5;
const lookMs = 10_000;

/**
 * Gives memory back after a busy time. When its heap shrinks, V8 keeps the pages for the next time, which may never come. In its
 * memory-saving mode the next collection returns them to the system. That mode costs more of the processor, so it is on only
 * while there is something to return and little else to do.
 */
export function createMemoryKeeper(
  timers: Timers,
  look: () => Usage = systemUsage(),
  save: (on: boolean) => void = setSaving,
): { start(): void; stop(): void } {
  let saving = false;
  let least = Infinity;
  let stop = (): void => undefined;
  return {
    start: () => {
      stop = timers.every(lookMs, () => {
        const { resident, known, busy } = look();
        least = Math.min(least, resident - known);
        const wanted = resident - known - least > keptBytes && busy < calm;
        if (wanted !== saving) save((saving = wanted));
      });
    },
    stop: () => stop(),
  };
}

function systemUsage(): () => Usage {
  let before = performance.eventLoopUtilization();
  return () => {
    const { rss, heapTotal, external } = process.memoryUsage();
    const now = performance.eventLoopUtilization();
    const busy = performance.eventLoopUtilization(now, before).utilization;
    before = now;
    return { resident: rss, known: heapTotal + external, busy };
  };
}

const setSaving = (on: boolean): void =>
  v8.setFlagsFromString(on ? '--memory-saver-mode' : '--no-memory-saver-mode');
