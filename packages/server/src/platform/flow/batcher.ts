import { ApiError } from '@parley/protocol';
import { sleep, systemTimers } from '../clock.ts';
import type { Timers } from '../clock.ts';
import { Pace } from '../pace.ts';
import { WaitingQuota } from './waiting-quota.ts';

export interface Batcher<I, O> {
  /** Resolves to the item's result once its batch has run. */
  add: (item: I) => Promise<O>;
  /** Items waiting for the next batch. */
  readonly waiting: number;
  /** Resolves when nothing is waiting or running. */
  idle(): Promise<void>;
}

/**
 * For look-ups that many callers need at once, as when all clients come back after a restart. Under full pressure, 2 ms
 * between two batches for each item per millisecond, at most 5 ms.
 */
export const readPace = (): Pace => new Pace({ msPerRate: 2, mostMs: 5 });

export interface BatcherOptions<I, O> {
  /**
   * Returns one result per item: a value, a promise of one that takes longer than the batch, or an Error for that
   * item alone.
   */
  run: (items: I[]) => Promise<(O | Promise<O> | Error)[]>;
  maxBatch: number;
  /** At this many waiting items the next one is refused with service_unavailable. */
  maxWaiting: number;
  /**
   * Items of one group keep their order; when more items wait than a batch takes, groups take turns. Without it, all
   * items are one group.
   */
  turns?: {
    groupOf: (item: I) => number;
    /** How many items of one group may wait. */
    maxWaiting: number;
  };
  /** Whether an error of the whole batch was caused by one of its items. */
  badItem?: (error: unknown) => boolean;
  /** Decides when the next batch may begin; without it, as soon as the last one is done. */
  pace?: Pace;
  /** If true, a first batch waits for the end of the event loop's turn, so that items that came in together go together. */
  wholeTurns?: boolean;
  timers?: Timers;
}

interface Waiting<I, O> {
  item: I;
  resolve: (value: O | Promise<O>) => void;
  reject: (error: unknown) => void;
}

/**
 * Runs items together: those that arrive while a batch runs become the next batch. How many wait is bounded, in all
 * and per group; beyond that an item is refused with service_unavailable.
 */
export function createBatcher<I, O>(options: BatcherOptions<I, O>): Batcher<I, O> {
  const {
    run,
    maxBatch,
    maxWaiting,
    turns,
    badItem = () => false,
    pace,
    wholeTurns,
    timers = systemTimers,
  } = options;
  const groupOf = turns?.groupOf ?? (() => 0);
  const quota = new WaitingQuota({ inAll: maxWaiting, ofOne: turns?.maxWaiting ?? maxWaiting });
  /** Waiting items by group; the group served last stands last. */
  const queues = new Map<number, Waiting<I, O>[]>();
  let active = false;
  let onIdle: (() => void)[] = [];

  function nextBatch(): Waiting<I, O>[] {
    const batch: Waiting<I, O>[] = [];
    while (queues.size > 0 && batch.length < maxBatch) {
      const share = Math.max(1, Math.floor((maxBatch - batch.length) / queues.size));
      for (const [group, queue] of [...queues]) {
        if (batch.length === maxBatch) break;
        const taken = queue.splice(0, share);
        batch.push(...taken);
        for (let i = 0; i < taken.length; i++) quota.leave(group);
        queues.delete(group);
        if (queue.length > 0) queues.set(group, queue);
      }
    }
    return batch;
  }

  async function work(): Promise<void> {
    while (queues.size > 0) {
      const batch = nextBatch();
      pace?.begin(batch.length);
      const results = await runApart(
        batch.map((w) => w.item),
        run,
        badItem,
      );
      batch.forEach((w, i) => {
        const result = results[i]!;
        if (result instanceof Error) w.reject(result);
        else w.resolve(result);
      });
      const wait = pace?.wait() ?? 0;
      if (wait > 0) await sleep(timers, wait);
    }
    active = false;
    const waiting = onIdle;
    onIdle = [];
    for (const resolve of waiting) resolve();
  }

  const add = (item: I): Promise<O> =>
    new Promise<O>((resolve, reject) => {
      const group = groupOf(item);
      if (!quota.enter(group)) {
        reject(new ApiError('service_unavailable'));
        return;
      }
      const queue = queues.get(group);
      if (queue) queue.push({ item, resolve, reject });
      else queues.set(group, [{ item, resolve, reject }]);
      if (active) return;
      active = true;
      if (wholeTurns) setImmediate(() => void work());
      else void Promise.resolve().then(work);
    });

  return {
    add,
    get waiting() {
      return quota.count;
    },
    idle: () => (active ? new Promise<void>((resolve) => onIdle.push(resolve)) : Promise.resolve()),
  };
}

/**
 * Runs items together, so that one bad item does not fail the others: a batch that fails because of one of its items
 * is run again in halves, down to single items. Any other error fails all items.
 */
export async function runApart<I, O>(
  items: I[],
  run: (items: I[]) => Promise<(O | Error)[]>,
  badItem: (error: unknown) => boolean,
): Promise<(O | Error)[]> {
  try {
    return await run(items);
  } catch (error) {
    if (items.length === 1 || !badItem(error)) return items.map(() => error as Error);
    const middle = items.length >> 1;
    return [
      ...(await runApart(items.slice(0, middle), run, badItem)),
      ...(await runApart(items.slice(middle), run, badItem)),
    ];
  }
}
