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
 * that both databases and this process always have work. Writes begin in order, at most `together` at once; batches are
 * confirmed in order, one at a time. When the function ends, also by an error, nothing is running any more.
 */
export async function pump<B>({ read, prepare, write, confirm }: Stages<B>, together = 1): Promise<void> {
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
  const writing: Promise<B>[] = [];
  let confirming = Promise.resolve(true);
  /** Waits until the first of the running writes is done. Returns false if nothing else must be written. */
  const first = async (): Promise<boolean> => {
    const batch = await writing[0]!;
    if (!(await confirming)) return false;
    void writing.shift();
    confirming = quiet(confirm(batch));
    return true;
  };
  try {
    while (ahead.length < mostAhead) next(ahead.at(-1)?.read);
    for (;;) {
      const batch = await ahead[0]!.ready;
      if (batch === null) break;
      next(ahead.at(-1)!.read);
      ahead.shift();
      writing.push(quiet(write(batch).then(() => batch)));
      if (writing.length === together && !(await first())) return;
    }
    while (writing.length > 0) if (!(await first())) return;
    await confirming;
  } finally {
    over = true;
    await Promise.allSettled([...ahead.flatMap((one) => [one.read, one.ready]), ...writing, confirming]);
  }
}

/** The promise is awaited later; until then its failure must not count as unhandled. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
