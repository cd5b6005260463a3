import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { RateClass } from '@parley/protocol';
import type { OpenCall } from '../../features/calls/signal.ts';
import type { Context, Environment } from '../../features/context.ts';
import type { LogEvent } from '../../log/events.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Check } from '../limits.ts';
import type { Writer } from './writer.ts';

/**
 * One socket after it was opened.
 *
 * opened --auth--> authenticating --hello--> live --close--> closed; any state may close.
 *
 * Frames of one moment leave as one write. A socket that does not take them (`maxBuffered`) is cut off: it never grows memory or
 * slows others, and its client syncs when it is back.
 */

/** Is told what goes over a user's sockets (`tracing.ts`). */
export interface FrameTrace {
  /** @param frame with its head, as it is written. */
  sent(session: Session, frame: Buffer): void;
  received(session: Session, frame: object, bytes: number): void;
  closed(session: Session): void;
}

/** A user with sockets on this node. */
export interface LocalUser {
  env: number;
  no: number;
  id: string;
  sessions: Session[];
  routes: Route[];
  /** While memberships are being loaded: conversations left meanwhile. */
  loading: { left: Set<string>; done: Promise<void> } | null;
  /** Somebody follows what goes over its sockets. */
  trace: FrameTrace | null;
}

/** A conversation with a live member on this node. */
export interface Route {
  cid: string;
  lastSeq: number;
  users: LocalUser[];
  held: Map<number, LogEvent> | null;
}

export type SessionState = 'opened' | 'authenticating' | 'live' | 'closed';

/** Bytes that may wait for one socket. */
const maxBuffered = 1024 * 1024;

/** All frames of one socket together, whatever they are; a large one counts for several. */
const framesPerSecond = 100;
const frameBurst = 1_000;
const frameShare = 4_096;

export class Session {
  readonly ws: WebSocket;
  readonly #socket: Duplex;
  readonly #writer: Writer<Session>;
  state: SessionState = 'opened';
  id = '';
  env: Environment | undefined;
  user: LocalUser | undefined;
  keyId: string | null = null;
  /** Environments that the URL names. */
  readonly named: string[];
  /** Where its client is (see `addressKey`). */
  readonly address: string;
  /** As its client names itself. */
  readonly sdk: string | null;
  /** Wall time of the login, in milliseconds. */
  loggedInAt = 0;
  /** It no longer counts among those that have said nothing. */
  heard = false;
  /** Seconds, as the token says: a later cut-off of the user's tokens ends the session. */
  tokenIssuedAt = 0;
  /** Milliseconds of wall time. */
  tokenExpiresAt = 0;
  /** On the monotonic clock, as whatever is called a tick. */
  readonly openedTick: number;
  lastFrameTick: number;
  nextHeartbeatTick = 0;
  expiryAnnounced = false;
  /** The presence registry knows it. */
  registered = false;
  /** With which it was closed, by either side; 0: it is open. */
  closeCode = 0;
  /** The log says already why it is closed. */
  noted = false;
  invalidInARow = 0;
  /** When the budget of frames is whole again (see `spend`). */
  #budgetWholeTick = 0;
  refused = 0;
  refusedSinceTick = 0;
  /** Users whose presence it watches. */
  watching: Set<number> | undefined;
  /** What its operations are given, and what they count against; made when first needed. */
  context: Context | undefined;
  checks: { [rate in RateClass]?: readonly Check[] } | undefined;
  /** Calls whose media it opened. */
  calls: Map<string, OpenCall> | undefined;
  /** `delivered` marks waiting for their second. */
  delivered: Map<string, number> | undefined;
  #pending: Buffer[] | undefined;

  constructor(
    ws: WebSocket,
    socket: Duplex,
    writer: Writer<Session>,
    clock: Clock,
    from: { address: string; named: string[]; sdk: string | null },
  ) {
    this.ws = ws;
    this.#socket = socket;
    this.#writer = writer;
    this.named = from.named;
    this.address = from.address;
    this.sdk = from.sdk;
    this.openedTick = this.lastFrameTick = clock.monotonic();
  }

  /** Counts a frame of this many bytes; false when the client sends more than any client needs to. */
  spend(bytes: number, tick: number): boolean {
    const cost = (1 + bytes / frameShare) * (1_000 / framesPerSecond);
    this.#budgetWholeTick = Math.max(this.#budgetWholeTick, tick) + cost;
    return this.#budgetWholeTick - tick <= frameBurst * (1_000 / framesPerSecond);
  }

  /** Nothing leaves before `hello`; what happened until then is the client's to sync. */
  send(frame: Buffer): void {
    if (this.state !== 'live') return;
    this.user?.trace?.sent(this, frame);
    if (this.#pending) {
      this.#pending.push(frame);
      this.#writer.add(null, frame.length);
    } else {
      this.#pending = [frame];
      this.#writer.add(this, frame.length);
    }
  }

  flush(): void {
    const frames = this.#pending;
    this.#pending = undefined;
    if (!frames || !this.isOpen) return;
    this.#socket.write(frames.length === 1 ? frames[0]! : this.#writer.joined(frames));
    this.checkBuffered();
  }

  /** Also after what the WebSocket library writes by itself (pongs). */
  checkBuffered(): void {
    if (this.#socket.writableLength > maxBuffered) this.#writer.overflowed(this);
  }

  get isOpen(): boolean {
    return this.ws.readyState === 1;
  }

  /** Frames sent before still leave. */
  close(code: number, reason = ''): void {
    this.flush();
    this.closeCode ||= code;
    this.ws.close(code, reason);
  }

  /** Says why and cuts the connection, without waiting for an answer from a client that may be gone. */
  end(code: number, reason = ''): void {
    this.close(code, reason);
    this.ws.terminate();
  }
}
