import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Environment } from '../../features/context.ts';
import type { LogEvent } from '../../log/events.ts';

/**
 * One socket after it was opened.
 *
 * opened --auth--> authenticating --hello--> live --close--> closed; any state may close.
 *
 * Frames of one moment leave as one write. A socket that does not take them (`maxBuffered`) is cut off: it never grows memory or
 * slows others, and its client syncs when it is back.
 */

/** A user with sockets on this node. */
export interface LocalUser {
  env: number;
  no: number;
  id: string;
  sessions: Session[];
  routes: Route[];
  /** While memberships are being loaded: conversations left meanwhile. */
  loading: { left: Set<string>; done: Promise<void> } | null;
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
  readonly #writer: Writer;
  state: SessionState = 'opened';
  id = '';
  env: Environment | undefined;
  user: LocalUser | undefined;
  keyId: string | null = null;
  /** Environments that the URL names. */
  named: string[];
  openedAt: number;
  lastFrameAt: number;
  nextHeartbeatAt = 0;
  tokenExpiresAt = 0;
  expiryAnnounced = false;
  /** The presence registry knows it. */
  registered = false;
  invalidInARow = 0;
  /** When the budget of frames is whole again (see `spend`). */
  #budgetWholeAt = 0;
  refused = 0;
  refusedSince = 0;
  /** Users whose presence it watches. */
  watching: Set<number> | undefined;
  /** Counts its presence.watch requests: the last one wins. */
  watchTurn: number | undefined;
  /** `delivered` marks waiting for their second. */
  delivered: Map<string, number> | undefined;
  #pending: Buffer[] | undefined;

  constructor(ws: WebSocket, socket: Duplex, writer: Writer, named: string[], now: number) {
    this.ws = ws;
    this.#socket = socket;
    this.#writer = writer;
    this.named = named;
    this.openedAt = now;
    this.lastFrameAt = now;
  }

  /** Counts a frame of this many bytes; false when the client sends more than any client needs to. */
  spend(bytes: number, now: number): boolean {
    const cost = (1 + bytes / frameShare) * (1_000 / framesPerSecond);
    this.#budgetWholeAt = Math.max(this.#budgetWholeAt, now) + cost;
    return this.#budgetWholeAt - now <= frameBurst * (1_000 / framesPerSecond);
  }

  /** Nothing leaves before `hello`; what happened until then is the client's to sync. */
  send(frame: Buffer): void {
    if (this.state !== 'live') return;
    if (this.#pending) {
      this.#pending.push(frame);
      this.#writer.add(null);
    } else {
      this.#pending = [frame];
      this.#writer.add(this);
    }
  }

  flush(): void {
    const frames = this.#pending;
    this.#pending = undefined;
    if (!frames || this.ws.readyState !== 1) return;
    this.#socket.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
    this.checkBuffered();
  }

  /** Also after what the WebSocket library writes by itself (pongs). */
  checkBuffered(): void {
    if (this.#socket.writableLength > maxBuffered) this.#writer.overflowed(this);
  }

  /** Frames sent before still leave. */
  close(code: number, reason = ''): void {
    this.flush();
    this.ws.close(code, reason);
  }
}

/** Frames per millisecond below which nothing waits, and the longest wait. */
const quietRate = 4;
const maxWaitMs = 20;

/**
 * Collects the sockets that have something to send and writes them all at once: at the end of the tick, or under load a few
 * milliseconds later, because several frames in one write cost little more than one.
 */
export class Writer {
  #dirty: Session[] = [];
  #scheduled = false;
  #frames = 0;
  /** Frames per millisecond, smoothed. */
  #rate = 0;
  #flushedAt = 0;
  readonly #onOverflow: (session: Session) => void;
  readonly #now: () => number;

  constructor(onOverflow: (session: Session) => void, now: () => number = () => performance.now()) {
    this.#onOverflow = onOverflow;
    this.#now = now;
  }

  /** A frame was queued; `session` when it is the first for its socket. */
  add(session: Session | null): void {
    this.#frames++;
    if (session) this.#dirty.push(session);
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.#rate < quietRate) setImmediate(() => this.#flush());
    else setTimeout(() => this.#flush(), Math.min(maxWaitMs, this.#rate / 2));
  }

  #flush(): void {
    const now = this.#now();
    this.#rate = (this.#rate * 3 + this.#frames / Math.max(1, now - this.#flushedAt)) / 4;
    this.#flushedAt = now;
    this.#frames = 0;
    const sessions = this.#dirty;
    this.#dirty = [];
    this.#scheduled = false;
    for (const session of sessions) session.flush();
  }

  overflowed(session: Session): void {
    this.#onOverflow(session);
  }
}
