import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import { asError, ParleyError } from '../errors.ts';
import type { AckData, FrameData, Hello, ServerFrame } from '../types.ts';
import { afterClose, backoff, closeError } from './backoff.ts';
import type { Next } from './backoff.ts';
import { Requests } from './requests.ts';
import type { Tokens } from './tokens.ts';

/** The part of a WebSocket that is used; the browser's, Node's and React Native's all have it. */
export interface SocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

export type ConnectionState = 'idle' | 'reconnecting' | 'connected' | 'failed';

export type CallFrame =
  | 'call.test'
  | 'call.open'
  | 'call.connect'
  | 'call.restart'
  | 'call.produce'
  | 'call.pause'
  | 'call.close'
  | 'call.consume'
  | 'call.layers'
  | 'call.stats';
type Acked = 'message.send' | 'read' | 'sync' | 'presence.watch' | 'token.refresh' | CallFrame;
type Unacked = 'typing' | 'delivered' | 'hb';

export interface ConnectionOptions {
  openSocket(): SocketLike;
  /** The address of the socket, for error messages. */
  address: string;
  /** Finds out over HTTP why the address opens no socket. */
  diagnose(): Promise<ParleyError>;
  tokens: Tokens;
  clock: Clock;
  random(): number;
  /** Runs the sync procedure. When it resolves, the state is `connected`; if it rejects, the socket is dropped. */
  onHello(hello: Hello): Promise<void>;
  /** Makes a request that the server answers, as a test of the connection. */
  probe(timeoutMs: number): Promise<unknown>;
  onFrame(frame: ServerFrame): void;
  onLost(code: number): void;
  onState(state: ConnectionState, error: ParleyError | null): void;
  onError(error: ParleyError): void;
}

const helloTimeoutMs = 15_000;
const requestTimeoutMs = 20_000;
const probeTimeoutMs = 5_000;
const silenceMs = 60_000;
/** After a `goaway` these close codes say nothing new; all others are handled as usual. */
const goawayCloses = new Set([1000, 1001, 1006, 1012]);

/**
 * sdk#procedure: the life of the connection.
 *
 *   idle --start--> connecting --open, auth, hello--> syncing --onHello done--> connected
 *   connecting | syncing | connected --closed, dead, sync failed--> waiting --delay or wake--> connecting
 *   any --4003, 4009, second 4001 in a row--> failed --start--> connecting;  any --stop--> idle
 *   connected --goaway--> connected until reconnectAfterMs, then connecting; a close that means more than
 *   "going away" is handled as without the goaway
 *
 * Outside, connecting, syncing and waiting are all `reconnecting`.
 */
export class Connection {
  state: ConnectionState = 'idle';
  /** The token with which this session authenticated. */
  token: string | null = null;
  #o: ConnectionOptions;
  #socket: SocketLike | null = null;
  #requests: Requests;
  /** Uses timers, not the time of day, which may be set. */
  #silence: Timer;
  #hello: Timer;
  #retry: Timer;
  #goaway: Timer;
  #attempt = 0;
  #authFailures = 0;
  #generation = 0;
  /** The generation of the socket that is being tested for a sign of life. */
  #proving = -1;
  #hardWait = false;
  #ready = false;
  #opened = false;
  #cause = '';

  constructor(options: ConnectionOptions) {
    this.#o = options;
    this.#requests = new Requests(options.clock);
    this.#hello = new Timer(options.clock);
    this.#retry = new Timer(options.clock);
    this.#goaway = new Timer(options.clock);
    this.#silence = new Timer(options.clock);
  }

  start(): void {
    if (this.state === 'reconnecting' || this.state === 'connected') return;
    this.#attempt = this.#authFailures = 0;
    this.#setState('reconnecting', null);
    void this.#connect();
  }

  stop(): void {
    this.#release(1000, new ParleyError('disconnected'));
    this.#setState('idle', null);
  }

  /**
   * Called when the network is back or the app comes to the foreground: reconnects at once, or tests a socket that
   * seems alive.
   */
  wake(): void {
    if (this.#ready) this.#prove();
    else if (this.state === 'reconnecting' && !this.#hardWait) {
      this.#attempt = 0;
      if (this.#retry.pending || this.#goaway.pending) void this.#connect();
    }
  }

  #prove(): void {
    const generation = this.#generation;
    if (this.#proving === generation) return;
    this.#proving = generation;
    this.#o
      .probe(probeTimeoutMs)
      .catch((e: unknown) => {
        if (generation === this.#generation && asError(e).code === 'timeout') this.#drop(4000, 'no answer');
      })
      .finally(() => {
        if (this.#proving === generation) this.#proving = -1;
      });
  }

  /** True from `hello` until the socket is gone. */
  get ready(): boolean {
    return this.#ready;
  }

  request<T extends Acked>(t: T, d: FrameData<T>, timeoutMs = requestTimeoutMs): Promise<AckData<T>> {
    if (!this.#ready) return Promise.reject(new ParleyError('disconnected'));
    const answer = this.#requests.add((id) => this.#write({ t, id, d }), timeoutMs);
    // Frames may still arrive although none of ours does, and heartbeats alone do not show that.
    answer.catch((e: unknown) => {
      if (this.#ready && asError(e).code === 'timeout') this.#prove();
    });
    return answer as Promise<AckData<T>>;
  }

  /** Sends without waiting for an answer; returns false if there is no socket. */
  send<T extends Unacked>(t: T, d: FrameData<T>): boolean {
    if (this.#ready) this.#write({ t, d });
    return this.#ready;
  }

  async #connect(): Promise<void> {
    const generation = ++this.#generation;
    this.#retry.clear();
    this.#goaway.clear();
    this.#hardWait = false;
    let token: string;
    try {
      token = await this.#o.tokens.get();
    } catch (e) {
      if (generation !== this.#generation) return;
      this.#o.onError(asError(e));
      return this.#wait({ final: false, delayMs: backoff(this.#attempt++, this.#o.random) });
    }
    if (generation !== this.#generation) return;
    this.token = token;
    this.#hello.set(helloTimeoutMs, () => this.#drop(4000, 'no hello'));
    this.#opened = false;
    this.#cause = '';
    try {
      const socket = (this.#socket = this.#o.openSocket());
      socket.onopen = () => {
        this.#opened = true;
        this.#write({ t: 'auth', d: { token } });
      };
      socket.onmessage = (event: { data: unknown }) => this.#receive(event.data);
      socket.onclose = (event: { code: number; reason: string }) => this.#closed(event.code, event.reason);
      socket.onerror = (event: { message?: string }) => void (this.#cause = event?.message ?? '');
    } catch (e) {
      this.#cause = asError(e).message;
      this.#closed(1006, '');
    }
  }

  #receive(data: unknown): void {
    if (this.#silence.pending) this.#listen();
    let frame: ServerFrame;
    try {
      frame = JSON.parse(data as string) as ServerFrame;
    } catch {
      return;
    }
    switch (frame?.t) {
      case 'hello':
        return void this.#greeted(frame.d);
      case 'ack':
        return this.#requests.ack(frame.re, frame.d);
      case 'error': {
        const error = new ParleyError(frame.code, frame.message, frame);
        if (!this.#requests.error(frame.re, error)) this.#o.onError(error);
        return;
      }
      case 'hb':
        return this.#write({ t: 'hb', d: {} });
      case 'goaway':
        return this.#goaway.set(frame.d.reconnectAfterMs, () => {
          this.#release(1000, new ParleyError('disconnected'));
          this.#setState('reconnecting', null);
          void this.#connect();
        });
      default:
        if (this.#ready) this.#o.onFrame(frame);
    }
  }

  /** sdk#heartbeat: any frame counts; 60 s without one and the socket is dead. */
  #listen(): void {
    this.#silence.set(silenceMs, () => this.#drop(4000, 'no frame for 60 s'));
  }

  async #greeted(hello: Hello): Promise<void> {
    const generation = this.#generation;
    this.#hello.clear();
    this.#listen();
    this.#authFailures = 0;
    this.#ready = true;
    try {
      await this.#o.onHello(hello);
    } catch (e) {
      if (generation !== this.#generation || !this.#ready) return;
      this.#o.onError(asError(e));
      return this.#drop(4000, 'sync failed');
    }
    if (generation !== this.#generation || !this.#ready) return;
    this.#attempt = 0;
    this.#setState('connected', null);
  }

  /** Gives the socket up, without waiting for a close event that a dead network may never bring. */
  #drop(code: number, reason: string): void {
    const socket = this.#socket;
    this.#detach();
    try {
      socket?.close(code, reason);
    } catch {
      // The socket never opened.
    }
    this.#closed(code, reason);
  }

  #closed(code: number, reason: string): void {
    const afterGoaway = this.#goaway.pending && goawayCloses.has(code);
    const greeted = this.#ready;
    if (code === 4001) this.#authFailures++;
    const error = closeError(code, reason, this.#o.address, this.#cause);
    this.#release(null, new ParleyError('disconnected', error.message), afterGoaway);
    this.#o.onLost(code);
    // If the socket never opened, ask why. A connection that was merely lost is not reported, unless the server gave
    // a reason.
    if (!this.#opened) void this.#o.diagnose().then((e) => this.#o.onError(e));
    else if (!greeted || code > 4000) this.#o.onError(error);
    const next = afterClose(code, reason, {
      attempt: this.#attempt++,
      authFailures: this.#authFailures,
      random: this.#o.random,
    });
    if (next.final) return this.#setState('failed', error);
    this.#setState('reconnecting', error);
    if (afterGoaway) return; // The timer of the goaway reconnects.
    this.#wait(next);
  }

  #wait(next: Next & { final: false }): void {
    this.#hardWait = next.hard === true;
    const refused = next.refresh ? this.token : null;
    this.#retry.set(next.delayMs, () => {
      // #connect asks the provider again and handles its failure.
      if (refused !== null) this.#o.tokens.refresh(refused).catch(() => {});
      void this.#connect();
    });
  }

  #release(closeCode: number | null, error: ParleyError, keepGoaway = false): void {
    const socket = this.#socket;
    this.#generation++;
    this.#ready = false;
    this.#detach();
    this.#hello.clear();
    this.#silence.clear();
    this.#retry.clear();
    if (!keepGoaway) this.#goaway.clear();
    if (closeCode !== null) {
      try {
        socket?.close(closeCode);
      } catch {
        // The socket never opened.
      }
      if (socket) this.#o.onLost(closeCode);
    }
    this.#requests.lose(error);
  }

  #detach(): void {
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.onerror = () => {};
  }

  #write(frame: object): void {
    try {
      this.#socket?.send(JSON.stringify(frame));
    } catch {
      // The socket is closing: its close event follows.
    }
  }

  #setState(state: ConnectionState, error: ParleyError | null): void {
    if (state === this.state) return;
    this.state = state;
    this.#o.onState(state, error);
  }
}
