import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { ClientRequest } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type pg from 'pg';
import { FrameReader, maskedFrame } from '../load/frames.ts';
import { signToken } from '../servers/parley.ts';
import type { Tenant } from '../servers/parley.ts';

/** What attacks are made of. Every connection comes from a loopback address that is not the victim's. */

export interface Target {
  port: number;
  /** The attacker's own environment, and one of kind development. */
  tenant: Tenant;
  development: Tenant;
  /** The service's store: only to hold a lock in it. */
  store: pg.ClientConfig;
}

/** What an attack did, counted and in words. */
export interface Done {
  count: number;
  text: string;
}
/** Goes on until the deadline at most, and leaves no connection behind. */
export type Strike = (deadline: Deadline) => Promise<Done>;
/** Prepares within the tenant's limits, then strikes. */
export type Attack = (target: Target) => Promise<Strike>;

export const from = '127.0.0.66';

export class Deadline {
  #at: number;
  constructor(ms: number) {
    this.#at = performance.now() + ms;
  }
  get left(): number {
    return Math.max(0, this.#at - performance.now());
  }
  get over(): boolean {
    return this.left === 0;
  }
  /** From now on it is over. */
  end(): void {
    this.#at = 0;
  }
  /** At most this long, and not beyond the end. */
  pause(ms: number): Promise<void> {
    return new Promise((done) => setTimeout(done, Math.min(ms, this.left)));
  }
}

/** Counts answers by what they mean to the attacker. */
export class Tally {
  #done = 0;
  readonly #others = new Map<string, number>();

  add(status: number | string): void {
    if (status === abandoned) return;
    if (typeof status === 'number' && status >= 200 && status < 400) this.#done++;
    else this.#others.set(String(status), (this.#others.get(String(status)) ?? 0) + 1);
  }

  done(what: string): Done {
    const others = [...this.#others].map(([status, n]) => `${n} × ${status}`);
    return { count: this.#done, text: [`${this.#done} ${what}`, ...others].join(', ') };
  }
}

/** The status of a call that the attacker itself gave up at the end of its strike. */
const abandoned = -1;

export interface Answer {
  /** 0: the service cut it off. */
  status: number;
  body: string;
}
export interface Call {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Calls over this many kept connections; more wait their turn. */
export class Caller {
  readonly #target: Target;
  readonly #agent: Agent;
  readonly #open = new Set<ClientRequest>();
  #over = false;

  /** @param deadline at which it ends by itself. */
  constructor(target: Target, connections: number, deadline?: Deadline) {
    this.#target = target;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    if (deadline) setTimeout(() => this.end(), deadline.left);
  }

  call(method: string, path: string, { token, body, headers }: Call = {}): Promise<Answer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const none = (): Answer => ({ status: this.#over ? abandoned : 0, body: '' });
    return new Promise((resolve) => {
      if (this.#over) return resolve(none());
      const sent = request(
        {
          host: '127.0.0.1',
          port: this.#target.port,
          localAddress: from,
          agent: this.#agent,
          method,
          path,
          headers: {
            ...(token === '' ? {} : { authorization: `Bearer ${token ?? this.#target.tenant.secretKey}` }),
            ...(text === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
            ...headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('close', () =>
            resolve(
              response.complete
                ? { status: response.statusCode!, body: Buffer.concat(chunks).toString() }
                : none(),
            ),
          );
        },
      );
      this.#open.add(sent);
      sent.on('error', () => resolve(none()));
      sent.on('close', () => this.#open.delete(sent));
      sent.end(text);
    });
  }

  /** For preparations: waits where a limit says so, and fails where the answer is no success after a minute. */
  async must<T = { id: string }>(method: string, path: string, call?: Call): Promise<T> {
    const deadline = new Deadline(60_000);
    for (;;) {
      const { status, body } = await this.call(method, path, call);
      if (status >= 200 && status < 300) return (body === '' ? null : JSON.parse(body)) as T;
      if ((status !== 429 && status !== 503) || deadline.over)
        throw new Error(`${method} ${path} answered ${status}: ${body.slice(0, 300)}`);
      await deadline.pause(200);
    }
  }

  /** Ends all connections, whatever they are at. */
  end(): void {
    this.#over = true;
    for (const sent of this.#open) sent.destroy();
    this.#agent.destroy();
  }
}

interface Pace {
  perSecond: number;
  /** At once; at this many none is begun, and what was held back is not made up for. */
  waiting?: number;
  times?: number;
}

/** Begins so often, whether or not answers come. */
export async function paced(
  deadline: Deadline,
  { perSecond, waiting = Infinity, times = Infinity }: Pace,
  work: (index: number) => Promise<void> | void,
): Promise<void> {
  const begin = performance.now();
  let open = 0;
  let made = 0;
  let heldBack = 0;
  while (!deadline.over && made < times) {
    const due = ((performance.now() - begin) / 1_000) * perSecond - heldBack;
    for (; made < due && made < times && open < waiting; made++) {
      open++;
      void Promise.resolve(work(made)).finally(() => open--);
    }
    heldBack += Math.max(0, Math.floor(due - made));
    await deadline.pause(10);
  }
}

/** So many at a time, each after the other. What they wait for must end with the deadline. */
export async function looped(deadline: Deadline, lanes: number, work: () => Promise<void>): Promise<void> {
  const lane = async (): Promise<void> => {
    while (!deadline.over) await work();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

export const unique = (prefix: string): string => `${prefix}-${randomUUID().slice(0, 8)}`;

export const tokenOf = (target: Target, user: string): string =>
  signToken(user, target.tenant, Math.floor(Date.now() / 1_000));

export const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

/** A group made by the server; unknown members are made with it. */
export async function group(caller: Caller, members: string[]): Promise<string> {
  const body = { type: 'group', name: 'Group', members };
  return (await caller.must('POST', '/v1/conversations', { body })).id;
}

/** Messages by one sender, eight at a time; their ids. */
export async function messages(
  caller: Caller,
  cid: string,
  senderId: string,
  count: number,
  fields: object,
): Promise<string[]> {
  const ids: string[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next++ < count)
      ids.push(
        (await caller.must('POST', `/v1/conversations/${cid}/messages`, { body: { senderId, ...fields } }))
          .id,
      );
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  return ids;
}

export async function prepared<T>(target: Target, work: (caller: Caller) => Promise<T>): Promise<T> {
  const caller = new Caller(target, 16);
  try {
    return await work(caller);
  } finally {
    caller.end();
  }
}

/** A TCP connection from the attacker's address. Errors end it and nothing else. */
export function dial(target: Target, onClose: () => void = () => undefined): Socket {
  const socket = connect({ host: '127.0.0.1', port: target.port, localAddress: from, noDelay: true });
  socket.on('error', () => undefined);
  socket.on('close', onClose);
  return socket;
}

export const upgrade =
  'GET /v1?sdk=bench/1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n' +
  'Sec-WebSocket-Protocol: chat.v1\r\n\r\n';

/** A socket that is logged in. */
export class Wire {
  readonly socket: Socket;
  readonly ready: Promise<boolean>;
  closed = false;
  onFrame: (frame: { t: string; re?: number; code?: string }) => void = () => undefined;
  #sent = 0;

  constructor(target: Target, user: string) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.ready = promise;
    this.socket = dial(target, () => {
      this.closed = true;
      resolve(false);
    });
    const reader = new FrameReader();
    let head: string | null = '';
    this.socket.write(upgrade);
    this.socket.on('data', (chunk: Buffer) => {
      let bytes = chunk;
      if (head !== null) {
        head += chunk.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (!head.startsWith('HTTP/1.1 101')) return void this.socket.destroy();
        bytes = Buffer.from(head.slice(end + 4), 'latin1');
        head = null;
        this.socket.write(maskedFrame(JSON.stringify({ t: 'auth', d: { token: tokenOf(target, user) } })));
      }
      try {
        reader.read(bytes, bytes.length, (all, start, end, opcode) => {
          if (opcode === 8) return void this.socket.destroy();
          if (opcode !== 1) return;
          const frame = JSON.parse(all.toString('utf8', start, end)) as { t: string; re?: number };
          if (frame.t === 'hello') resolve(true);
          else if (frame.t === 'hb') this.socket.write(maskedFrame('{"t":"hb"}'));
          else this.onFrame(frame);
        });
      } catch {
        this.socket.destroy();
      }
    });
  }

  send(t: string, d: object): void {
    this.socket.write(maskedFrame(JSON.stringify({ t, id: ++this.#sent, d })));
  }
}

/** Sockets of these users, fifty at a time; those that were refused are left out. */
export async function wires(target: Target, users: readonly string[]): Promise<Wire[]> {
  const open: Wire[] = [];
  for (let first = 0; first < users.length; first += 50) {
    const some = users.slice(first, first + 50).map((user) => new Wire(target, user));
    const ready = await Promise.all(some.map((wire) => wire.ready));
    open.push(...some.filter((_, i) => ready[i]));
  }
  return open;
}
