import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { OpenCall } from '../../features/calls/signal.ts';
import type { Environment } from '../../features/context.ts';
import type { Clock } from '../../platform/clock.ts';
import type { LiveSession, LocalUser, SessionState } from '../../realtime/local-user.ts';
import type { Writer } from './writer.ts';

/**
 * One socket after it was opened.
 *
 * opened --auth--> authenticating --hello--> live --close--> closed; any state may close.
 *
 * Frames of one moment are sent as one write. A socket whose client does not read (`maxBuffered`) is cut off, so that
 * it neither uses up memory nor slows others; its client syncs when it is back.
 */

/** How many bytes may wait for one socket. */
const maxBuffered = 1024 * 1024;

/** How much a client may have been asked to confirm; more is not asked. */
const maxAsked = 8;

/** How many frames may wait for the `hello` of one socket. */
const maxHeld = 1_000;

/** The budget of one socket for frames of all kinds; a frame costs one more for each `frameShare` bytes. */
const framesPerSecond = 100;
const frameBurst = 1_000;
const frameShare = 4_096;

export class Session implements LiveSession {
  readonly ws: WebSocket;
  readonly #socket: Duplex;
  readonly #writer: Writer<Session>;
  state: SessionState = 'opened';
  id = '';
  env: Environment | undefined;
  user: LocalUser | undefined;
  keyId: string | null = null;
  /** The environments that the URL names. */
  readonly named: string[];
  /** The network of the client's address (`networkOf`). */
  readonly address: string;
  readonly #local: boolean;
  /** The name that the client gives itself. */
  readonly sdk: string | null;
  /** Wall time of the login, in milliseconds. */
  loggedInAt = 0;
  /** True if it no longer counts among the sockets that have sent nothing. */
  heard = false;
  /** The `iat` of the token in seconds: a later cut-off of the user's tokens ends the session. */
  tokenIssuedAt = 0;
  /** Wall time in milliseconds. */
  tokenExpiresAt = 0;
  /** Milliseconds of the monotonic clock, like everything called a tick. */
  readonly openedTick: number;
  lastFrameTick: number;
  nextHeartbeatTick = 0;
  expiryAnnounced = false;
  /** True if the presence registry has it. */
  registered = false;
  closeCode = 0;
  /** True if the log already says why it was closed. */
  noted = false;
  invalidInARow = 0;
  /** The tick at which the budget of frames is full again (see `spend`). */
  #budgetWholeTick = 0;
  refused = 0;
  refusedSinceTick = 0;
  watching: Set<number> | undefined;
  /** The calls whose media it opened. */
  calls: Map<string, OpenCall> | undefined;
  delivered: Map<string, number> | undefined;
  /** What the client was asked to confirm. */
  #asked: Set<string> | undefined;
  #pending: Buffer[] | undefined;

  constructor(
    ws: WebSocket,
    socket: Duplex,
    writer: Writer<Session>,
    clock: Clock,
    from: { address: string; named: string[]; sdk: string | null; local?: boolean },
  ) {
    this.ws = ws;
    this.#socket = socket;
    this.#writer = writer;
    this.named = from.named;
    this.address = from.address;
    this.#local = from.local ?? false;
    this.sdk = from.sdk;
    this.openedTick = this.lastFrameTick = clock.monotonic();
  }

  /** Counts a frame of this many bytes; returns false if the client sends more than any client needs to. */
  spend(bytes: number, tick: number): boolean {
    const cost = (1 + bytes / frameShare) * (1_000 / framesPerSecond);
    this.#budgetWholeTick = Math.max(this.#budgetWholeTick, tick) + cost;
    return this.#budgetWholeTick - tick <= frameBurst * (1_000 / framesPerSecond);
  }

  /** What is sent from here on waits for `hello`: what that will say may be older. */
  hold(): void {
    this.#pending = [];
  }

  greet(hello: Buffer): void {
    const held = this.#pending ?? [];
    this.#pending = undefined;
    this.state = 'live';
    for (const frame of [hello, ...held]) this.send(frame);
  }

  /** Nothing goes out before `hello`. What was sent before `hold` is dropped: the client syncs it. */
  send(frame: Buffer): void {
    if (this.state !== 'live') {
      if (this.state !== 'authenticating' || !this.#pending) return;
      if (this.#pending.push(frame) <= maxHeld) return;
      this.#pending = undefined;
      return this.#writer.overflowed(this);
    }
    this.user?.trace?.sent(this, frame);
    if (this.#pending) {
      this.#pending.push(frame);
      this.#writer.add(null, frame.length);
    } else {
      this.#pending = [frame];
      this.#writer.add(this, frame.length);
    }
  }

  /**
   * Asks the client to confirm everything sent so far, by a ping: every client answers it by itself, and frames arrive
   * in their order.
   */
  askToConfirm(about: string): void {
    if (this.state !== 'live' || !this.isOpen) return;
    this.#asked ??= new Set();
    if (this.#asked.size >= maxAsked) return;
    this.#asked.add(about);
    this.flush();
    this.ws.ping(about);
    this.checkBuffered();
  }

  /** Whether the client was asked for this, and has not confirmed it before. */
  confirms(about: string): boolean {
    return this.#asked?.delete(about) ?? false;
  }

  flush(): void {
    const frames = this.#pending;
    this.#pending = undefined;
    if (!frames || this.state !== 'live' || !this.isOpen) return;
    this.#socket.write(frames.length === 1 ? frames[0]! : this.#writer.joined(frames));
    this.checkBuffered();
  }

  /** Also called after the WebSocket library wrote something itself (pongs). */
  checkBuffered(): void {
    if (this.#socket.writableLength > maxBuffered) this.#writer.overflowed(this);
  }

  /** True if the socket comes from this machine, directly. */
  isLocal(): boolean {
    return this.#local;
  }

  get isOpen(): boolean {
    return this.ws.readyState === 1;
  }

  /** Frames that were queued before still go out. */
  close(code: number, reason = ''): void {
    this.flush();
    this.closeCode ||= code;
    this.ws.close(code, reason);
  }

  /** Sends the close code and cuts the connection, without waiting for an answer from a client that may be gone. */
  end(code: number): void {
    this.close(code);
    this.ws.terminate();
  }
}
