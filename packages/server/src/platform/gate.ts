import { ApiError } from '@parley/protocol';

/** Runs the work given to it, a few at a time. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * At most `width` run at once and at most `maxWaiting` wait for their turn, in order; whoever comes on top of that is
 * refused with service_unavailable, before any work was done.
 */
export function createGate(width: number, maxWaiting: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < width) running++;
    else if (waiting.length >= maxWaiting) throw new ApiError('service_unavailable');
    // Whoever ends hands its place over, so `running` stays as it is.
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
