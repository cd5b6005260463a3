import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { FrameReader, maskedFrame } from './frames.ts';
import type { OnFrame } from './frames.ts';
import type { Account } from './messages.ts';
import type { Speaker, Wire } from './wire.ts';

/** One socket of one user. Bytes are read into a buffer that all clients share: they are used up at once. */

const shared = Buffer.allocUnsafeSlow(256 * 1024);
const text = 1;
const close = 8;
const ping = 9;
const pong = 10;

export interface Watcher {
  ready(client: Client): void;
  /** It never got ready, or was lost later. */
  ended(client: Client, why: string): void;
  frame(client: Client, bytes: Buffer, start: number, end: number): void;
  /** Before the frames of one read. */
  readStarts(): void;
}

export class Client implements Speaker {
  readonly account: Account;
  readonly number: number;
  readonly wire: Wire;
  requests = 0;
  /** Times of the sends that are not confirmed yet. */
  readonly waiting: number[] = [];
  /** When the last burst left. */
  burstAt = 0;
  timer: NodeJS.Timeout | null = null;
  state: 'new' | 'upgrading' | 'login' | 'ready' | 'ended' = 'new';
  readonly #watcher: Watcher;
  readonly #reader = new FrameReader();
  #socket: Socket | null = null;
  #head = '';

  constructor(account: Account, number: number, wire: Wire, watcher: Watcher) {
    this.account = account;
    this.number = number;
    this.wire = wire;
    this.#watcher = watcher;
  }

  open(port: number): void {
    this.state = 'upgrading';
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: shared, callback: (length, bytes) => this.#read(bytes as Buffer, length) },
    });
    this.#socket = socket;
    socket.on('connect', () => {
      const protocol =
        this.wire.subprotocol === null ? '' : `Sec-WebSocket-Protocol: ${this.wire.subprotocol}\r\n`;
      socket.write(
        `GET ${this.wire.path} HTTP/1.1\r\nHost: localhost:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n${protocol}\r\n`,
      );
    });
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('the server closed the connection'));
  }

  send(payload: string): void {
    this.#socket?.write(maskedFrame(payload));
  }

  sendAll(payloads: string[]): void {
    this.#socket?.cork();
    for (const payload of payloads) this.send(payload);
    this.#socket?.uncork();
  }

  ready(): void {
    if (this.state !== 'login') return;
    this.state = 'ready';
    this.#watcher.ready(this);
  }

  fail(why: string): void {
    this.#end(why.slice(0, 300));
  }

  /** Without a word to the server, as when a network goes away. */
  destroy(): void {
    this.state = 'ended';
    if (this.timer) clearTimeout(this.timer);
    this.#socket?.destroy();
    this.#socket = null;
  }

  #end(why: string): void {
    if (this.state === 'ended') return;
    this.destroy();
    this.#watcher.ended(this, why);
  }

  #read(bytes: Buffer, length: number): boolean {
    if (length <= 0 || this.state === 'ended') return true;
    try {
      if (this.state === 'upgrading') this.#upgrade(bytes.subarray(0, length));
      else {
        this.#watcher.readStarts();
        this.#reader.read(bytes, length, this.#onFrame);
      }
    } catch (error) {
      this.#end(error instanceof Error ? error.message : String(error));
    }
    return true;
  }

  #upgrade(chunk: Buffer): void {
    const before = this.#head.length;
    this.#head += chunk.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) {
      if (this.#head.length > 16_384) throw new Error('no end of the handshake’s answer');
      return;
    }
    if (!this.#head.startsWith('HTTP/1.1 101')) throw new Error(this.#head.slice(0, 200));
    this.#head = '';
    this.state = 'login';
    this.wire.opened(this);
    const rest = chunk.subarray(end + 4 - before);
    if (rest.length > 0) this.#reader.read(rest, rest.length, this.#onFrame);
  }

  readonly #onFrame: OnFrame = (bytes, start, end, opcode) => {
    if (opcode === text) {
      if (!this.wire.lines) return this.#message(bytes, start, end);
      for (let at = start; at < end;) {
        const newline = bytes.indexOf(10, at);
        const stop = newline < 0 || newline > end ? end : newline;
        this.#message(bytes, at, stop);
        at = stop + 1;
      }
    } else if (opcode === ping) this.#socket?.write(maskedFrame(bytes.toString('latin1', start, end), pong));
    else if (opcode === close) {
      const code = end - start >= 2 ? bytes.readUInt16BE(start) : 1005;
      this.#end(`closed with ${code} ${bytes.toString('utf8', Math.min(start + 2, end), end)}`);
    }
  };

  #message(bytes: Buffer, start: number, end: number): void {
    if (this.state === 'ready') this.#watcher.frame(this, bytes, start, end);
    else if (this.state === 'login') this.wire.login(this, bytes.toString('utf8', start, end));
  }
}
