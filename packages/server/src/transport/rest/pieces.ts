import { Readable } from 'node:stream';

/**
 * Larger bodies are sent in pieces of about this many bytes, so that other requests get their turn in between, and
 * progress can be observed.
 */
export const pieceBytes = 64 * 1024;

/** A body that is made, or cut, piece by piece while it is read. */
export class Pieces extends Readable {
  /** The length of the whole body, possibly estimated. */
  readonly bytes: number;
  readonly #pieces: Iterator<Buffer>;
  /** Called when a piece was read. */
  onTaken: () => void = () => undefined;

  constructor(bytes: number, pieces: Iterable<Buffer>) {
    super({ highWaterMark: 1 });
    this.bytes = bytes;
    this.#pieces = pieces[Symbol.iterator]();
  }

  override _read(): void {
    setImmediate(() => {
      this.onTaken();
      const next = this.#pieces.next();
      this.push(next.done ? null : next.value);
    });
  }
}

export const cutBody = (body: Buffer): Pieces => new Pieces(body.length, slices(body));

function* slices(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}

/**
 * The JSON of an answer. A list is written item by item, because serializing a megabyte at once would delay all other
 * requests.
 */
export function jsonOf(body: object): string | Pieces {
  if (!('data' in body) || !Array.isArray(body.data)) return JSON.stringify(body);
  const { data, ...rest } = body as { data: unknown[] };
  const texts = pageTexts(data, rest);
  const first = texts.next().value!;
  if (first.items === data.length) return first.text;
  const about = Math.ceil((first.text.length * data.length) / first.items);
  return new Pieces(about, encoded(first.text, texts));
}

function* encoded(first: string, texts: Iterable<{ text: string }>): Generator<Buffer> {
  yield Buffer.from(first);
  for (const { text } of texts) yield Buffer.from(text);
}

/** Yields `{"data":[…],…}` in texts of about `pieceBytes`, each with the number of items in it. */
function* pageTexts(data: unknown[], rest: object): Generator<{ text: string; items: number }> {
  const others = JSON.stringify(rest).slice(1);
  const end = others === '}' ? ']}' : `],${others}`;
  let text = '{"data":[';
  let items = 0;
  for (const [at, item] of data.entries()) {
    if (at > 0) text += ',';
    text += JSON.stringify(item);
    items += 1;
    if (text.length < pieceBytes || at === data.length - 1) continue;
    yield { text, items };
    [text, items] = ['', 0];
  }
  yield { text: text + end, items };
}
