import { HistoryError } from '../../platform/history/port.ts';
import type { Engine } from '../../platform/history/port.ts';
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

/** Makes records ready; what it returns writes all of them, and says which the database refuses, each with the reason. */
export type Writer = (
  env: number,
  history: Engine,
  placed: readonly Placed[],
  /** `most` is the number of records in a piece. */
  how: { rewrite: boolean; most: number },
) => () => Promise<Map<Placed, string>>;

export const createWriter =
  ({ logger, counted }: WriterOptions): Writer =>
  (env, history, placed, how) => {
    const ready = (piece: readonly Placed[]) => readyPiece(history, piece, how.rewrite);
    // Only the first: nearly always it is the only one, and if there are more, they are large.
    const [first, ...others] = pieces(placed, how.most);
    const begun = first && ready(first);
    return async () => {
      const refused = new Map<Placed, string>();
      if (begun) await writeOrSplit(begun, refused);
      for (const piece of others) await writeOrSplit(ready(piece), refused);
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
  };

interface Piece {
  placed: readonly Placed[];
  send(): Promise<void>;
  /** The same in two halves. */
  halves(): Piece[];
}

function readyPiece(history: Engine, placed: readonly Placed[], rewrite: boolean): Piece {
  const half = Math.ceil(placed.length / 2);
  return {
    placed,
    send: history.prepare(
      placed.map((p) => p.record),
      { rewrite },
    ),
    halves: () =>
      [placed.slice(0, half), placed.slice(half)].map((part) => readyPiece(history, part, rewrite)),
  };
}

/** Halves a refused piece until the refused record is found. */
async function writeOrSplit(piece: Piece, refused: Map<Placed, string>): Promise<void> {
  try {
    await piece.send();
  } catch (error) {
    if (!(error instanceof HistoryError) || error.errorClass !== 'refused') throw error;
    if (piece.placed.length === 1) refused.set(piece.placed[0]!, error.message);
    else for (const half of piece.halves()) await writeOrSplit(half, refused);
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
