import { HistoryError } from '../../platform/history/port.ts';
import type { History } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Placed } from './records.ts';

/** Writes records into a customer's database: in pieces, and without those that it refuses. */

/** A piece has at most this many records, fewer if the database is slow, and at most this many characters. */
export const mostRows = 500;
const mostCharacters = 1_000_000;

export interface WriterOptions {
  logger: Logger;
  counted(what: 'written' | 'refused', count: number): void;
}

/** Writes all records; returns those that the database refuses, each with the reason. */
export type Writer = (
  env: number,
  history: History,
  placed: readonly Placed[],
  /** `most` is the number of records in a piece. */
  how: { rewrite: boolean; most: number },
) => Promise<Map<Placed, string>>;

export const createWriter =
  ({ logger, counted }: WriterOptions): Writer =>
  async (env, history, placed, { rewrite, most }) => {
    const refused = new Map<Placed, string>();
    for (const piece of pieces(placed, most)) await writeOrSplit(history, piece, rewrite, refused);
    counted('written', placed.length - refused.size);
    for (const [{ conv, message }, error] of refused) {
      counted('refused', 1);
      logger.error(
        { env, conv, message, error },
        'a history database refuses a record: it is set aside and stays in our store',
      );
    }
    return refused;
  };

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
      refused.set(piece[0]!, error.message);
      return;
    }
    const half = Math.ceil(piece.length / 2);
    await writeOrSplit(history, piece.slice(0, half), rewrite, refused);
    await writeOrSplit(history, piece.slice(half), rewrite, refused);
  }
}

/** Cuts the records into pieces of at most this many records and characters. */
function pieces(placed: readonly Placed[], most: number): Placed[][] {
  const found: Placed[][] = [];
  let piece: Placed[] = [];
  let size = 0;
  for (const one of placed) {
    const { record } = one;
    const length =
      record.kind === 'message'
        ? 200 +
          (record.text?.length ?? 0) +
          (record.metadata?.length ?? 0) +
          (record.attachments?.length ?? 0)
        : 200;
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
