import { setImmediate } from 'node:timers/promises';

/** Moves batches from one store into another. */
export interface Stages<B> {
  /** The batch after the given one, or the first; null if there is none. */
  read(after: B | null): Promise<B | null>;
  /** Does what can be done of a write before the turn of the batch has come. */
  prepare(batch: B): void;
  write(batch: B): Promise<void>;
  /** Ends the responsibility for a written batch. Returns false if it is no longer ours, and nothing else must be written. */
  confirm(batch: B): Promise<boolean>;
}

/** How many batches are read or made ready before their turn. */
const mostAhead = 2;

/**
 * While one batch is written, the next is made ready, the one after it is read and the one before is confirmed, so
 * that both databases and this process always have work. Batches are written and confirmed in order, one at a time.
 * When the function ends, also by an error, nothing is running any more.
 */
export async function pump<B>({ read, prepare, write, confirm }: Stages<B>): Promise<void> {
  const ahead: { read: Promise<B | null>; ready: Promise<B | null> }[] = [];
  let over = false;
  const next = (after: Promise<B | null> | undefined): void => {
    const reading = quiet(
      after ? after.then((batch) => (batch === null || over ? null : read(batch))) : read(null),
    );
    const ready = reading.then(async (batch) => {
      // The one after it is asked for first.
      await setImmediate();
      if (batch !== null && !over) prepare(batch);
      return batch;
    });
    ahead.push({ read: reading, ready: quiet(ready) });
  };
  let confirming = Promise.resolve(true);
  try {
    while (ahead.length < mostAhead) next(ahead.at(-1)?.read);
    for (;;) {
      const batch = await ahead[0]!.ready;
      if (batch === null) break;
      next(ahead.at(-1)!.read);
      ahead.shift();
      await write(batch);
      if (!(await confirming)) return;
      confirming = quiet(confirm(batch));
    }
    await confirming;
  } finally {
    over = true;
    await Promise.allSettled([...ahead.flatMap((one) => [one.read, one.ready]), confirming]);
  }
}

/** The promise is awaited later; until then its failure must not count as unhandled. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
