import v8 from 'node:v8';
import type { Timers } from './clock.ts';

/** What a process uses at one moment. */
export interface Usage {
  /** Bytes that the operating system counts for this process. */
  resident: number;
  /** Bytes of heap and buffers: memory that V8 uses, or will use soon. */
  known: number;
  /** The share of the time since the last look in which the event loop had work, 0 to 1. */
  busy: number;
}

/** Resident memory beyond `known` may grow this many bytes above its smallest value so far. */
const keptBytes = 64 * 1024 * 1024;
const calm = 0.5;
const lookMs = 10_000;

/**
 * Gives memory back after a busy time. When its heap shrinks, V8 keeps the pages, which may never be needed again. In
 * its memory-saving mode the next garbage collection returns them to the system. That mode costs more CPU, so it is
 * on only while there is something to return and the process is not busy.
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
