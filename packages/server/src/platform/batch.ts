import { ApiError } from '@parley/protocol';
import { Pace } from './pace.ts';

export interface Batcher<I, O> {
  (item: I): Promise<O>;
  /** Items waiting for the next batch. */
  readonly waiting: number;
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>;
}

/** Of look-ups that many ask for at once, as when all come back after a restart: at one per millisecond, 2 ms apart. */
export const readPace = (): Pace => new Pace(2, 5);

interface Waiting<I, O> {
  item: I;
  resolve: (value: O) => void;
  reject: (error: unknown) => void;
}

/**
 * Everything that arrives while the batch before is under way goes out as one batch.
 * `run` answers item by item: a value, or an Error for that item alone. When the whole batch fails and
 * `alone` allows it, the items run one by one, so that one bad item never fails its neighbours.
 */
export function createBatcher<I, O>(options: {
  run: (items: I[]) => Promise<(O | Error)[]>;
  maxBatch: number;
  /** At this many waiting items the next one is refused with service_unavailable. */
  maxWaiting: number;
  /** Batches under way at once. */
  lanes?: number;
  alone?: (error: unknown) => boolean;
  /** When the next batch may begin; without one, as soon as the batch before is done. */
  pace?: Pace;
}): Batcher<I, O> {
  const { run, maxBatch, maxWaiting, lanes = 1, alone = () => false, pace } = options;
  let queue: Waiting<I, O>[] = [];
  let active = 0;
  let onIdle: (() => void)[] = [];

  async function flush(batch: Waiting<I, O>[]): Promise<void> {
    try {
      const results = await run(batch.map((w) => w.item));
      batch.forEach((w, i) => {
        const result = results[i]!;
        if (result instanceof Error) w.reject(result);
        else w.resolve(result);
      });
    } catch (error) {
      if (batch.length > 1 && alone(error)) {
        for (const w of batch) await flush([w]);
      } else {
        for (const w of batch) w.reject(error);
      }
    }
  }

  async function lane(): Promise<void> {
    active++;
    while (queue.length > 0) {
      const batch = queue.length <= maxBatch ? queue : queue.slice(0, maxBatch);
      queue = queue.length <= maxBatch ? [] : queue.slice(maxBatch);
      pace?.begin(batch.length);
      await flush(batch);
      const wait = pace?.wait() ?? 0;
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    }
    active--;
    if (active === 0) {
      const waiting = onIdle;
      onIdle = [];
      for (const resolve of waiting) resolve();
    }
  }

  const add = (item: I): Promise<O> =>
    new Promise<O>((resolve, reject) => {
      if (queue.length >= maxWaiting) {
        reject(new ApiError('service_unavailable'));
        return;
      }
      queue.push({ item, resolve, reject });
      if (active < lanes && queue.length === 1) void Promise.resolve().then(lane);
    });

  return Object.defineProperties(add, {
    waiting: { get: () => queue.length },
    idle: {
      value: () =>
        active === 0 && queue.length === 0 ? Promise.resolve() : new Promise<void>((r) => onIdle.push(r)),
    },
  }) as Batcher<I, O>;
}
