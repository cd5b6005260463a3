import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline, Transform } from 'node:stream';
import { ApiError } from '@parley/protocol';
import { cutBody, pieceBytes, Pieces } from './pieces.ts';

/**
 * Answers that wait to be read. A caller who asks and does not read would fill our memory. So waiting bytes are
 * bounded per caller (further requests are refused before any work is done) and in all (the answer that has not moved
 * for the longest time is dropped first). An answer of which nothing is read for a while is given up with its
 * connection.
 */

export interface UnsentBounds {
  /** Bytes that may wait for one caller: for an environment's server, or for any other caller. */
  server: number;
  other: number;
  /** Bytes that may wait in this process. */
  all: number;
  /** A piece that is not read within this many milliseconds ends the connection. */
  stallMs: number;
}

const megabyte = 1024 * 1024;
export const unsentBounds: UnsentBounds = {
  server: 32 * megabyte,
  other: 4 * megabyte,
  all: 128 * megabyte,
  stallMs: 20_000,
};

/** Smaller answers, in bytes, fit into the kernel's buffers and are not watched. */
const watchedBytes = 8 * 1024;
const retryAfterMs = 1_000;

/** Bytes that a stream of unknown length keeps in its buffers. */
const streamBytes = 2 * pieceBytes;

const bytesOf = (body: Buffer | Readable): number =>
  Buffer.isBuffer(body) ? body.length : body instanceof Pieces ? body.bytes : streamBytes;

function watchedStream(body: Readable, onTaken: () => void): Readable {
  const through = new Transform({
    transform: (chunk, _encoding, done) => {
      onTaken();
      done(null, chunk);
    },
  });
  // If one of the two ends, the other ends too.
  return pipeline(body, through, () => undefined);
}

interface Waiting {
  who: string;
  bytes: number;
  movedAt: number;
  response: ServerResponse;
}

export class Unsent {
  readonly #bounds: UnsentBounds;
  readonly #now: () => number;
  /** Waiting answers in the order in which they last moved. */
  readonly #waiting = new Set<Waiting>();
  readonly #byCaller = new Map<string, number>();
  #bytes = 0;

  constructor(bounds: UnsentBounds, now: () => number) {
    this.#bounds = bounds;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @param who the name of the key that the caller's requests are counted by (transport/limits.ts). */
  refuseFull(who: string, isServer: boolean): void {
    const bound = isServer ? this.#bounds.server : this.#bounds.other;
    if ((this.#byCaller.get(who) ?? 0) < bound) return;
    throw new ApiError('rate_limited', {
      message: 'The answers to earlier requests wait to be read: read them first.',
      retryAfterMs,
    });
  }

  /** Returns what to send instead of the payload; it is watched until it was read. */
  watch(
    who: string,
    payload: string | Buffer | Readable,
    response: ServerResponse,
  ): Buffer | Readable | string {
    const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
    const bytes = bytesOf(body);
    if (bytes < watchedBytes) return payload;
    const waiting: Waiting = { who, bytes, movedAt: this.#now(), response };
    this.#waiting.add(waiting);
    this.#count(who, bytes);
    response.once('close', () => this.#forget(waiting));
    for (const oldest of this.#waiting) {
      if (this.#bytes <= this.#bounds.all) break;
      this.#giveUp(oldest);
    }
    if (Buffer.isBuffer(body) && bytes <= pieceBytes) return body;
    const pieces = Buffer.isBuffer(body) ? cutBody(body) : body;
    if (!(pieces instanceof Pieces)) return watchedStream(pieces, () => this.#moved(waiting));
    pieces.onTaken = () => this.#moved(waiting);
    return pieces;
  }

  /** Must be called regularly: gives up answers that have not moved for too long. */
  tick(): void {
    const before = this.#now() - this.#bounds.stallMs;
    for (const waiting of this.#waiting) {
      if (waiting.movedAt > before) break;
      this.#giveUp(waiting);
    }
  }

  /** The whole body is kept, and counted, until its last piece was read. */
  #moved(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return;
    waiting.movedAt = this.#now();
    this.#waiting.add(waiting);
  }

  #giveUp(waiting: Waiting): void {
    this.#forget(waiting);
    const { response } = waiting;
    // A reset, because otherwise the kernel would keep offering what it holds.
    response.socket?.resetAndDestroy();
    response.destroy();
  }

  #forget(waiting: Waiting): void {
    if (this.#waiting.delete(waiting)) this.#count(waiting.who, -waiting.bytes);
  }

  #count(who: string, change: number): void {
    this.#bytes += change;
    const left = (this.#byCaller.get(who) ?? 0) + change;
    if (left > 0) this.#byCaller.set(who, left);
    else this.#byCaller.delete(who);
  }
}
