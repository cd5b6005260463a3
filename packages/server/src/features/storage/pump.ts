/** Batches on their way from one store into another. */
export interface Stages<B> {
  /** The batch after this one, or the first; null: there is none. */
  read(after: B | null): Promise<B | null>;
  write(batch: B): Promise<void>;
  /** What was written needs no more care here. False: it is not ours any more, and nothing else is to be written. */
  confirm(batch: B): Promise<boolean>;
}

/**
 * While one batch is written the next is read and the one before is confirmed, so that each of the two databases always has something
 * to do. Batches are written and confirmed in their order, one at a time. Whatever happens, nothing is under way when it ends.
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

/** It is awaited later: until then nobody hears of its failure. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
