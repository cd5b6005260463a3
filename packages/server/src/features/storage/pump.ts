/** Moves batches from one store into another. */
export interface Stages<B> {
  /** The batch after the given one, or the first; null if there is none. */
  read(after: B | null): Promise<B | null>;
  write(batch: B): Promise<void>;
  /** Ends the responsibility for a written batch. Returns false if it is no longer ours, and nothing else must be written. */
  confirm(batch: B): Promise<boolean>;
}

/**
 * While one batch is written, the next is read and the one before is confirmed, so that both databases always have
 * work. Batches are written and confirmed in order, one at a time. When the function ends, also by an error, nothing
 * is running any more.
 */
export async function pump<B>({ read, write, confirm }: Stages<B>): Promise<void> {
  let reading = read(null);
  let confirming = Promise.resolve(true);
  try {
    for (let batch = await reading; batch !== null; batch = await reading) {
      reading = quiet(read(batch));
      await write(batch);
      if (!(await confirming)) return;
      confirming = quiet(confirm(batch));
    }
    await confirming;
  } finally {
    await Promise.allSettled([reading, confirming]);
  }
}

/** The promise is awaited later; until then its failure must not count as unhandled. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
