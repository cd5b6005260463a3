import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ApiError } from '@parley/protocol';
import { CountsByKey } from '../../platform/flow/counts-by-key.ts';
import { CountsPerSecond } from '../../platform/flow/counts-per-second.ts';
import { WaitingQuota } from '../../platform/flow/waiting-quota.ts';

/**
 * Bounds what a client holds that sends slowly, does not read, does not end, or asks again as soon as it is refused.
 * A connection is given up with a reset if answers may wait on it, because otherwise the kernel would keep offering
 * what it holds.
 */

const megabyte = 1024 * 1024;

/** The limits, and what happens at each. Times are in milliseconds, and are looked at once a second. */
export const slowClientLimits = {
  /** Headers, and a body that is not a file's: the connection ends. */
  requestMs: 30_000,
  /** The body of a file: the connection ends. */
  transferMs: 15 * 60_000,
  /** Silence between two requests: the connection is closed. */
  keepAliveMs: 65_000,
  /** The time between two requests, whatever bytes come: the connection is reset. */
  idleMs: 70_000,
  /** A connection that was ended here, and not by the client: it is destroyed. */
  lingerMs: 1_000,
  /** An answer of which no piece is read: its connection is reset. */
  stallMs: 20_000,
  /** Bytes that wait to be read by an environment's server, or any other caller: its next request is refused with 429. */
  unreadOfServer: 32 * megabyte,
  unreadOfOther: 4 * megabyte,
  /** Bytes that wait to be read in this process: the answer that has not moved for the longest time is dropped. */
  unreadInAll: 128 * megabyte,
  /** Refusals of one caller in a second: further ones are answered `heldMs` later. */
  refusals: 50,
  heldMs: 1_000,
  /** Refusals of one caller, and in all, that wait like this: the connection of the next one is cut. */
  held: 100,
  heldInAll: 5_000,
  /** Callers whose refusals are counted in a second: those of other callers are answered at once. */
  callers: 10_000,
};

/**
 * Larger bodies are sent in pieces of about this many bytes, so that other requests get their turn in between, and
 * progress can be observed.
 */
export const pieceBytes = 64 * 1024;
/** Smaller answers, in bytes, fit into the kernel's buffers and are not watched. */
const watchedBytes = 8 * 1024;
/** Bytes that a stream of unknown length keeps in its buffers. */
const streamBytes = 2 * pieceBytes;
const retryAfterMs = 1_000;
const lookMs = 1_000;

interface Answer {
  who: string;
  bytes: number;
  response: ServerResponse;
}

export class SlowClients {
  readonly #limits: typeof slowClientLimits;
  readonly #bodies: Deadline<IncomingMessage>;
  readonly #idle: Deadline<Socket>;
  readonly #ended: Deadline<Socket>;
  readonly #answers: Deadline<Answer>;
  /** The answer to the latest request of each connection: a client may ask again before it was answered. */
  readonly #latest = new WeakMap<Socket, ServerResponse>();
  readonly #unread = new CountsByKey<string>();
  #unreadBytes = 0;
  readonly #refusals: CountsPerSecond;
  readonly #held: WaitingQuota<string>;

  /**
   * Attaches the limits to a server.
   * @param now milliseconds of a clock that never jumps.
   */
  constructor(server: Server, now: () => number, limits = slowClientLimits) {
    this.#limits = limits;
    this.#bodies = new Deadline(limits.requestMs, now, (request) => {
      if (!request.complete) request.destroy();
    });
    this.#idle = new Deadline(limits.idleMs, now, (socket) => socket.resetAndDestroy());
    this.#ended = new Deadline(limits.lingerMs, now, (socket) => socket.destroy());
    this.#answers = new Deadline(limits.stallMs, now, (answer) => this.#giveUp(answer));
    this.#refusals = new CountsPerSecond(limits.callers, now);
    this.#held = new WaitingQuota({ ofOne: limits.held, inAll: limits.heldInAll });

    server.keepAliveTimeout = limits.keepAliveMs;
    server.headersTimeout = limits.requestMs;
    server.requestTimeout = limits.transferMs;
    server.prependListener('request', (request, response) => this.#asked(request.socket, response));
    server.on('clientError', (_error, socket: Socket) => {
      // What the client sends after it was told to go fails again.
      if (this.#ended.has(socket)) return;
      this.#ended.begin(socket);
      socket.once('close', () => this.#ended.end(socket));
    });
    const timer = setInterval(() => this.look(), lookMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  /** Gives up what is overdue. It is called every second. */
  look(): void {
    for (const deadline of [this.#bodies, this.#idle, this.#ended, this.#answers]) deadline.look();
  }

  /** Bounds the time that the body of a request may take; bodies of files have more. */
  boundBody(request: IncomingMessage): void {
    const { headers } = request;
    const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
    if (!hasBody) return;
    this.#bodies.begin(request);
    request.once('close', () => this.#bodies.end(request));
  }

  #asked(socket: Socket, response: ServerResponse): void {
    if (!this.#latest.has(socket)) socket.once('close', () => this.#idle.end(socket));
    this.#latest.set(socket, response);
    this.#idle.end(socket);
    // Answers of one connection end in order.
    response.once('close', () => {
      if (this.#latest.get(socket) === response && !socket.destroyed) this.#idle.begin(socket);
    });
  }

  /** The connection carries no requests any more. */
  upgraded(socket: Socket): void {
    this.#idle.end(socket);
    this.#latest.delete(socket);
  }

  /** Bytes of answers that wait to be read. */
  get unreadBytes(): number {
    return this.#unreadBytes;
  }

  /** @param who the name that the caller's requests are counted by (transport/limits.ts). */
  refuseFull(who: string, isServer: boolean): void {
    const { unreadOfServer, unreadOfOther } = this.#limits;
    if (this.#unread.of(who) < (isServer ? unreadOfServer : unreadOfOther)) return;
    throw new ApiError('rate_limited', {
      message: 'The answers to earlier requests wait to be read: read them first.',
      retryAfterMs,
    });
  }

  /** Returns what to send instead of the payload; it is watched, and counted as a whole, until it was read. */
  watch(
    who: string,
    payload: string | Buffer | Readable,
    response: ServerResponse,
  ): string | Buffer | Readable {
    // The client left before the answer was there.
    if (response.destroyed) {
      if (payload instanceof Readable) payload.destroy();
      return payload;
    }
    const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
    const bytes = Buffer.isBuffer(body) ? body.length : streamBytes;
    if (bytes < watchedBytes) return payload;
    const answer = { who, bytes, response };
    this.#answers.begin(answer);
    this.#count(who, bytes);
    response.once('close', () => {
      this.#forget(answer);
      if (body instanceof Readable) body.destroy();
    });
    for (const oldest of this.#answers.inOrder()) {
      if (this.#unreadBytes <= this.#limits.unreadInAll) break;
      this.#giveUp(oldest);
    }
    if (Buffer.isBuffer(body) && bytes <= pieceBytes) return body;
    const pieces = inTurns(Buffer.isBuffer(body) ? slices(body) : body, () => this.#answers.moved(answer));
    return Readable.from(pieces, { objectMode: false, highWaterMark: 1 });
  }

  #giveUp(answer: Answer): void {
    this.#forget(answer);
    answer.response.socket?.resetAndDestroy();
    answer.response.destroy();
  }

  #forget(answer: Answer): void {
    if (this.#answers.end(answer)) this.#count(answer.who, -answer.bytes);
  }

  #count(who: string, change: number): void {
    this.#unreadBytes += change;
    this.#unread.add(who, change);
  }

  /** Resolves when a refusal of this caller may be answered; false if it gets no answer. */
  async hold(who: string): Promise<boolean> {
    if (this.#refusals.add(who) <= this.#limits.refusals) return true;
    if (!this.#held.enter(who)) return false;
    await new Promise((resolve) => setTimeout(resolve, this.#limits.heldMs));
    this.#held.leave(who);
    return true;
  }
}

/** Things that must move within some time, in the order in which they last moved. */
class Deadline<T> {
  readonly #ms: number;
  readonly #now: () => number;
  readonly #giveUp: (thing: T) => void;
  readonly #movedAt = new Map<T, number>();

  constructor(ms: number, now: () => number, giveUp: (thing: T) => void) {
    this.#ms = ms;
    this.#now = now;
    this.#giveUp = giveUp;
  }

  has(thing: T): boolean {
    return this.#movedAt.has(thing);
  }

  begin(thing: T): void {
    this.#movedAt.set(thing, this.#now());
  }

  moved(thing: T): void {
    if (this.#movedAt.delete(thing)) this.begin(thing);
  }

  end(thing: T): boolean {
    return this.#movedAt.delete(thing);
  }

  inOrder(): Iterable<T> {
    return this.#movedAt.keys();
  }

  look(): void {
    const before = this.#now() - this.#ms;
    for (const [thing, at] of this.#movedAt) {
      if (at > before) break;
      this.#giveUp(thing);
      this.#movedAt.delete(thing);
    }
  }
}

/** Yields one piece in a turn of the event loop; `onTaken` is called when a piece was read. */
async function* inTurns(
  pieces: Iterable<Buffer> | AsyncIterable<Buffer>,
  onTaken: () => void,
): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    yield piece;
    onTaken();
    await nextTurn();
  }
}

function* slices(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}
