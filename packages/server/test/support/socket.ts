import assert from 'node:assert/strict';
import type { Agent } from 'node:http';
import { WebSocket } from 'ws';
import { clientFrames, ephemeralFrames, errorCodes, Hello, realtime, socketEvents } from '@parley/protocol';
import type { FrameType, ServerFrame } from '@parley/protocol';
import { ajv } from './schemas.ts';

/** Speaks chat.v1 to the service. Every frame that arrives is checked against the protocol's schemas. */

const compiled = new Map<object, ReturnType<typeof ajv.compile>>();
const bare = ajv.compile({ type: 'object', maxProperties: 0 });

function assertShape(schema: object, value: unknown, what: string): void {
  let validate = compiled.get(schema);
  if (!validate) compiled.set(schema, (validate = ajv.compile(schema)));
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
}

export type Frame = any;
type Match = (frame: Frame) => boolean;

/** Only so that a test that would hang says what it waited for. */
const patienceMs = 120_000;

export class SocketRefusal extends Error {
  readonly frame: Frame;
  constructor(frame: Frame) {
    super(`${frame.code}: ${frame.message}`);
    this.frame = frame;
  }
}

/** Those that no test closed. */
const leftOpen = new Set<WebSocket>();

/** Ends the sockets that tests left open: those of a service that goes on would keep the process alive. */
export function terminateSockets(): void {
  for (const socket of leftOpen) socket.terminate();
}

export class TestSocket {
  readonly ws: WebSocket;
  /** Everything that came, in order. */
  readonly frames: Frame[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly opened: Promise<void>;
  /** Which frame each request id stands for, to check its ack. */
  readonly asked = new Map<string | number, FrameType>();
  hello: Frame;
  /** Heartbeats are answered, as by any client, unless a test wants silence. */
  isSilent = false;
  #taken = new Set<Frame>();
  #waiting = new Set<() => void>();
  #lastId = 0;
  #end: { code: number; reason: string } | undefined;
  #problem: Error | undefined;

  constructor(
    url: string,
    protocols: string | string[] = realtime.subprotocol,
    headers: Record<string, string> = {},
    agent?: Agent,
  ) {
    this.ws = new WebSocket(url, protocols, { perMessageDeflate: false, headers, agent });
    leftOpen.add(this.ws);
    this.opened = new Promise((resolve, reject) => {
      this.ws.once('open', resolve);
      this.ws.once('error', reject);
      this.ws.once('unexpected-response', (_request, response) => {
        reject(
          Object.assign(new Error(`refused with ${response.statusCode}`), { status: response.statusCode }),
        );
        this.ws.terminate();
      });
    });
    this.opened.catch(() => undefined);
    this.closed = new Promise((resolve) =>
      this.ws.once('close', (code, reason) => {
        this.#end = { code, reason: reason.toString() };
        leftOpen.delete(this.ws);
        this.#wake();
        resolve(this.#end);
      }),
    );
    this.ws.on('error', () => undefined);
    this.ws.on('message', (data: Buffer, isBinary) => {
      try {
        assert.equal(isBinary, false, 'socket#open: text frames');
        const frame = JSON.parse(data.toString()) as ServerFrame;
        this.#check(frame);
        this.frames.push(frame);
        if (frame.t === 'hb' && !this.isSilent && this.ws.readyState === WebSocket.OPEN) this.send('hb');
      } catch (error) {
        this.#problem ??= error as Error;
      }
      this.#wake();
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #check(frame: ServerFrame): void {
    if (frame.t === 'hello') return assertShape(Hello, frame.d, 'hello');
    if (frame.t === 'event') {
      assert.ok(frame.e in socketEvents, `event ${frame.e}`);
      assert.ok(Number.isInteger(frame.seq) && frame.cid.startsWith('conv_'), JSON.stringify(frame));
      return assertShape(socketEvents[frame.e], frame.d, frame.e);
    }
    if (frame.t === 'ack') {
      const asked = this.asked.get(frame.re);
      assert.ok(asked, `an ack for ${frame.re}, which nobody asked`);
      const { ack } = clientFrames[asked];
      assert.ok(ack, `${asked} has no ack`);
      return assertShape(ack, frame.d, `ack of ${asked}`);
    }
    if (frame.t === 'error') {
      assert.ok((errorCodes as string[]).includes(frame.code), JSON.stringify(frame));
      assert.equal(typeof frame.message, 'string');
      const { t: _t, re: _re, code: _code, message: _message, retryAfterMs, details, ...rest } = frame;
      assert.ok(bare(rest), `error frame: ${JSON.stringify(frame)}`);
      assert.ok(details === undefined || typeof details === 'object');
      assert.ok(retryAfterMs === undefined || (Number.isInteger(retryAfterMs) && retryAfterMs >= 0));
      return;
    }
    assert.ok(frame.t in ephemeralFrames, `frame ${JSON.stringify(frame)}`);
    assertShape(ephemeralFrames[frame.t], frame.d, frame.t);
  }

  /** The first frame not yet taken that matches, now or later. */
  async next(match: Match, what = match.toString()): Promise<Frame> {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      if (this.#problem) throw this.#problem;
      const found = this.frames.find((f) => !this.#taken.has(f) && match(f));
      if (found) {
        this.#taken.add(found);
        return found;
      }
      if (this.#end) throw new Error(`closed with ${JSON.stringify(this.#end)} while waiting for ${what}`);
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () =>
            done(() =>
              reject(new Error(`waited for ${what}; came: ${JSON.stringify(this.frames.slice(-10))}`)),
            ),
          Math.max(1, deadline - Date.now()),
        );
        const done = (then: () => void) => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          then();
        };
        const wake = () => done(resolve);
        this.#waiting.add(wake);
      });
    }
  }

  event(e: string, cid?: string): Promise<Frame> {
    return this.next(
      (f) => f.t === 'event' && f.e === e && (cid === undefined || f.cid === cid),
      `event ${e}`,
    );
  }
  ephemeral(t: string, match: (d: any) => boolean = () => true): Promise<Frame> {
    return this.next((f) => f.t === t && match(f.d), t);
  }

  raw(data: string | Buffer): void {
    this.ws.send(data);
  }
  send(t: string, d?: unknown, id?: string | number): void {
    this.raw(JSON.stringify({ t, ...(id === undefined ? {} : { id }), ...(d === undefined ? {} : { d }) }));
  }

  /** Sends and waits for the answer, whichever it is. */
  async ask(t: string, d: unknown, id: string | number = `r${++this.#lastId}`): Promise<Frame> {
    this.asked.set(id, t as FrameType);
    this.send(t, d, id);
    return this.next((f) => (f.t === 'ack' || f.t === 'error') && f.re === id, `the answer to ${t}`);
  }
  /** The ack's `d`; an error frame is thrown. */
  async request(t: string, d: unknown, id?: string | number): Promise<any> {
    const answer = await this.ask(t, d, id);
    if (answer.t === 'error') throw new SocketRefusal(answer);
    return answer.d;
  }
  async refused(t: string, d: unknown, code: string): Promise<Frame> {
    const answer = await this.ask(t, d);
    assert.equal(answer.t, 'error', `${t} was accepted: ${JSON.stringify(answer)}`);
    assert.equal(answer.code, code, answer.message);
    return answer;
  }

  /** Everything the server sent to this socket before now has arrived. */
  async barrier(): Promise<void> {
    await this.request('sync', { cursor: null });
  }

  events(cid?: string): Frame[] {
    return this.frames.filter((f) => f.t === 'event' && (cid === undefined || f.cid === cid));
  }

  async auth(token: string): Promise<this> {
    await this.opened;
    this.send('auth', { token });
    this.hello = (await this.next((f) => f.t === 'hello', 'hello')).d;
    return this;
  }

  async close(): Promise<void> {
    this.ws.close(1000);
    await this.closed;
  }
}

export interface SocketOptions {
  env?: string;
  protocols?: string | string[];
  path?: string;
  headers?: Record<string, string>;
}

export const socketUrl = (url: string, { env, path = '/v1' }: SocketOptions = {}): string =>
  `${url.replace('http', 'ws')}${path}?sdk=test/1${env === undefined ? '' : `&env=${env}`}`;

/** A socket that has not authenticated yet. */
export const open = (service: { url: string }, options: SocketOptions = {}): TestSocket =>
  new TestSocket(socketUrl(service.url, options), options.protocols, options.headers);

/** A socket after `hello`. */
export const connect = (
  service: { url: string },
  token: string,
  options: SocketOptions = {},
): Promise<TestSocket> => open(service, options).auth(token);
