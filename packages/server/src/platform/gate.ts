import { ApiError } from '@parley/protocol';

/** Runs the work given to it, at most a few pieces at a time. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * At most `width` pieces of work run at once, and at most `maxWaiting` wait for their turn, in order. Any more are
 * refused with `service_unavailable` before they begin.
 */
export function createGate(width: number, maxWaiting: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < width) running++;
    else if (waiting.length >= maxWaiting) throw new ApiError('service_unavailable');
    // Finished work hands its place to the next one, so `running` does not change.
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
