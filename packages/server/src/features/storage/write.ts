import { HistoryError } from '../../platform/history/port.ts';
import type { History } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Placed } from './records.ts';

/**
 * Writes batches into a customer's database: `pump` says what runs at the same time, the writer cuts a batch into
 * pieces and finds the records that the database refuses.
 */

/** A piece has at most this many records, fewer if the database is slow, and at most this many characters. */
const mostRows = 500;
const leastRows = 10;
const mostCharacters = 1_000_000;

/** Records that the database refuses, each with the reason. */
export type Refused = ReadonlyMap<Placed, string>;

export type Writer = ReturnType<typeof createWriter>;

export function createWriter({
  logger,
  counted,
}: {
  logger: Logger;
  counted(what: 'written' | 'refused', count: number): void;
}) {
  /** Only sizes other than the usual one. */
  const sizes = new Map<number, number>();
  const sizeOf = (env: number): number => sizes.get(env) ?? mostRows;
  function resize(env: number, size: number): void {
    if (size >= mostRows) sizes.delete(env);
    else sizes.set(env, Math.max(leastRows, Math.floor(size)));
  }
  return {
    /** How many records a piece for an environment's database has: halved after a time-out, doubled after a write. */
    sizeOf,
    async write(env: number, history: History, placed: readonly Placed[], rewrite = false): Promise<Refused> {
      const refused = new Map<Placed, string>();
      if (placed.length === 0) return refused;
      try {
        for (const piece of pieces(placed, sizeOf(env))) await writeOrSplit(history, piece, rewrite, refused);
      } catch (error) {
        if (error instanceof HistoryError && error.errorClass === 'timeout') resize(env, sizeOf(env) / 2);
        throw error;
      }
      resize(env, sizeOf(env) * 2);
      counted('written', placed.length - refused.size);
      for (const [{ conv, message }, error] of refused) {
        counted('refused', 1);
        logger.error(
          { env, conv, message, error },
          'a history database refuses a record: it is set aside and stays in our store',
        );
      }
      return refused;
    },
  };
}

/** Halves a refused piece until the refused record is found. */
async function writeOrSplit(
  history: History,
  piece: readonly Placed[],
  rewrite: boolean,
  refused: Map<Placed, string>,
): Promise<void> {
  try {
    await history.write(
      piece.map((p) => p.record),
      { rewrite },
    );
  } catch (error) {
    if (!(error instanceof HistoryError) || error.errorClass !== 'refused') throw error;
    if (piece.length === 1) {
      const [{ record, ...place }] = piece as [Placed];
      if (record.extras === null) return void refused.set(piece[0]!, error.message);
      // What extras tell is kept here too: a database that has no place for them is better off without them than without the record.
      const plain: Placed[] = [{ ...place, record: { ...record, extras: null } }];
      const without = new Map<Placed, string>();
      await writeOrSplit(history, plain, rewrite, without);
      for (const reason of without.values()) refused.set(piece[0]!, reason);
      return;
    }
    const half = Math.ceil(piece.length / 2);
    for (const part of [piece.slice(0, half), piece.slice(half)])
      await writeOrSplit(history, part, rewrite, refused);
  }
}

/** Cuts the records into pieces of at most this many records and characters. */
function pieces(placed: readonly Placed[], most: number): Placed[][] {
  const found: Placed[][] = [];
  let piece: Placed[] = [];
  let size = 0;
  for (const one of placed) {
    const { record } = one;
    let length = 200 + (record.extras?.length ?? 0);
    if (record.kind === 'message')
      for (const text of [record.text, record.metadata, record.attachments]) length += text?.length ?? 0;
    if (piece.length > 0 && (piece.length >= most || size + length > mostCharacters)) {
      found.push(piece);
      piece = [];
      size = 0;
    }
    piece.push(one);
    size += length;
  }
  if (piece.length > 0) found.push(piece);
  return found;
}

/** Moves batches `B` from one store into another; `W` is what a write finds out. */
export interface Stages<B, W> {
  /** The batch after the given one, or the first; null if there is none. */
  read(after: B | null): Promise<B | null>;
  write(batch: B): Promise<W>;
  /** Ends the responsibility for a written batch. Returns false if it is no longer ours, and nothing else must be written. */
  confirm(batch: B, written: W): Promise<boolean>;
}

/**
 * At most two batches are under way, while the next is read. Both are written at once if the database takes
 * `writesAtOnce` of two; otherwise one is confirmed while the other is written. Batches are written and confirmed in
 * order, and none after one that failed. When the function ends, also by an error, nothing is running any more.
 */
export async function pump<B, W>(
  { read, write, confirm }: Stages<B, W>,
  writesAtOnce: number,
): Promise<void> {
  const underWay: Promise<boolean>[] = [];
  let written: Promise<unknown> = Promise.resolve();
  let reading = read(null);
  try {
    for (let batch = await reading; batch !== null; batch = await reading) {
      const [current, before] = [batch, underWay.at(-1)];
      const writing = writesAtOnce > 1 ? write(current) : written.then(() => write(current));
      const confirmed = Promise.all([writing, before]).then(
        ([result, goesOn]) => goesOn !== false && confirm(current, result),
      );
      written = writing;
      underWay.push(confirmed);
      reading = read(current);
      // Each is awaited below, or when this function ends: until then its failure is not unhandled.
      for (const promise of [writing, confirmed, reading]) promise.catch(() => undefined);
      if (underWay.length === 2 && !(await underWay.shift())) return;
    }
    await Promise.all(underWay);
  } finally {
    await Promise.allSettled([...underWay, written, reading]);
  }
}
