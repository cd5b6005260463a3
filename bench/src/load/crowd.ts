import { Histogram } from '../stats.ts';
import { Client } from './client.ts';
import type { Watcher } from './client.ts';
import { elapsed, markedText, MarkFinder, senderAt, timeAt } from './mark.ts';
import type { OpenReport, OpenRequest, RunReport, RunRequest, WireName } from './messages.ts';
import { ack, delivery, failure } from './wire.ts';
import type { Wire } from './wire.ts';
import { centrifugoWire } from './wire-centrifugo.ts';
import { parleyWire, plainWire } from './wire-chat.ts';
import { socketIoWire } from './wire-socketio.ts';
import { xmppWire } from './wire-xmpp.ts';

/** All the users: opens their sockets, lets them send at their pace, and measures. */

const wires: Record<WireName, Wire> = {
  parley: parleyWire,
  plain: plainWire,
  socketio: socketIoWire,
  xmpp: xmppWire,
  centrifugo: centrifugoWire,
};

const openTimeoutMs = 120_000;
const drainMs = 5_000;
/** Opened in one go of the event loop. */
const openChunk = 100;
const micros = (): number => performance.now() * 1_000;
const cpuMs = (since?: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
};
const delay = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export class Crowd {
  #clients: Client[] = [];
  #wire: Wire = plainWire;
  readonly #random: () => number;
  readonly #window: (edge: 'begin' | 'end') => void;
  readonly #marks = new MarkFinder();
  readonly #ack = new Histogram();
  readonly #delivery = new Histogram();
  #now = 0;
  #acked = 0;
  #delivered = 0;
  #errors = 0;
  #firstError = '';
  #lost = 0;
  #running: RunRequest | null = null;
  #opening: { ended: (client: Client, why: string) => void; ready: (client: Client) => void } | null = null;

  constructor(random: () => number, window: (edge: 'begin' | 'end') => void) {
    this.#random = random;
    this.#window = window;
  }

  readonly #watcher: Watcher = {
    ready: (client) => this.#opening?.ready(client),
    ended: (client, why) => {
      if (this.#opening) return this.#opening.ended(client, why);
      this.#lost++;
      this.#note(why);
    },
    readStarts: () => {
      this.#now = micros();
    },
    frame: (client, bytes, start, end) => this.#frame(client, bytes, start, end),
  };

  /** Opens a socket for every account, closing those of before; resolves when all are in or have failed. */
  async open(request: OpenRequest): Promise<OpenReport> {
    this.close();
    this.#wire = wires[request.wire];
    this.#clients = request.accounts.map((account, i) => new Client(account, i, this.#wire, this.#watcher));
    const cpu = process.cpuUsage();
    const begin = micros();
    const login = new Histogram();
    let opened = 0;
    let failed = 0;
    let firstFailure = '';
    let next = 0;
    let last = begin;
    const atOnce = request.atOnce || this.#clients.length;
    const ports = [request.port].flat();
    await new Promise<void>((resolve) => {
      const openedAt = new Map<Client, number>();
      const settle = (client: Client): void => {
        last = micros();
        login.record(last - (openedAt.get(client) ?? begin));
        openedAt.delete(client);
        if (opened + failed === this.#clients.length) finish();
        else if (next < this.#clients.length && !pumping) pump();
      };
      const finish = (): void => {
        clearTimeout(timer);
        this.#opening = null;
        resolve();
      };
      const timer = setTimeout(() => {
        firstFailure ||= 'not in within two minutes';
        failed = this.#clients.length - opened;
        finish();
      }, openTimeoutMs);
      this.#opening = {
        ready: (client) => {
          opened++;
          settle(client);
        },
        ended: (client, why) => {
          failed++;
          firstFailure ||= why;
          settle(client);
        },
      };
      let pumping = false;
      const pump = (): void => {
        pumping = false;
        for (let i = 0; i < openChunk && next < this.#clients.length && openedAt.size < atOnce; i++) {
          const client = this.#clients[next++]!;
          openedAt.set(client, micros());
          client.open(ports[client.number % ports.length]!);
        }
        if (next < this.#clients.length && openedAt.size < atOnce) {
          pumping = true;
          setImmediate(pump);
        }
      };
      if (this.#clients.length === 0) finish();
      else pump();
    });
    return {
      opened,
      failed,
      firstFailure,
      ms: (last - begin) / 1_000,
      login: login.summary(),
      cpuMs: cpuMs(cpu),
    };
  }

  close(): void {
    this.#running = null;
    for (const client of this.#clients) client.destroy();
    this.#clients = [];
  }

  async run(request: RunRequest): Promise<RunReport> {
    const speakers = this.#clients.filter((c) => c.state === 'ready' && c.account.speaks !== null);
    this.#reset();
    this.#errors = this.#lost = 0;
    this.#firstError = '';
    this.#running = request;
    // Spread over one pace, or all would send at once.
    for (const client of speakers) {
      client.waiting.length = 0;
      this.#later(client, this.#random() * request.paceMs);
    }
    await delay(request.warmMs);
    const warm = { acked: this.#acked, delivered: this.#delivered };
    this.#reset();
    this.#window('begin');
    const cpu = process.cpuUsage();
    const begin = micros();
    await delay(request.windowMs);
    const seconds = (micros() - begin) / 1e6;
    const report = {
      seconds,
      acked: this.#acked,
      delivered: this.#delivered,
      ack: this.#ack.summary(),
      delivery: this.#delivery.summary(),
      cpuMs: cpuMs(cpu),
    };
    this.#window('end');
    this.#running = null;
    for (const client of speakers) if (client.timer) clearTimeout(client.timer);
    await this.#drain(speakers);
    const total = { acked: warm.acked + this.#acked, delivered: warm.delivered + this.#delivered };
    return { ...report, errors: this.#errors, firstError: this.#firstError, lost: this.#lost, total };
  }

  /** Until every send is confirmed and deliveries have stopped coming. */
  async #drain(speakers: Client[]): Promise<void> {
    const until = micros() + drainMs * 1_000;
    let before = -1;
    while (micros() < until) {
      const quiet = before === this.#delivered && speakers.every((c) => c.waiting.length === 0);
      if (quiet) return;
      before = this.#delivered;
      await delay(200);
    }
  }

  #reset(): void {
    this.#ack.clear();
    this.#delivery.clear();
    this.#acked = this.#delivered = 0;
  }

  #note(error: string): void {
    this.#errors++;
    this.#firstError ||= error.slice(0, 300);
  }

  #later(client: Client, ms: number): void {
    client.timer = setTimeout(this.#speak, ms, client);
  }

  readonly #speak = (client: Client): void => {
    const request = this.#running;
    if (!request || client.state !== 'ready') return;
    const now = micros();
    client.burstAt = now;
    const room = client.account.speaks!;
    if (request.burst === 1) {
      client.waiting.push(now);
      client.send(this.#wire.message(client, room, markedText(now, client.number)));
      return;
    }
    const frames: string[] = [];
    for (let i = 0; i < request.burst; i++) {
      client.waiting.push(now);
      frames.push(this.#wire.message(client, room, markedText(now, client.number)));
    }
    client.sendAll(frames);
  };

  #confirmed(client: Client): void {
    const sentAt = client.waiting.shift();
    if (sentAt === undefined) return;
    this.#acked++;
    this.#ack.record(this.#now - sentAt);
    this.#next(client);
  }

  #next(client: Client): void {
    if (client.waiting.length > 0 || !this.#running) return;
    const pace = this.#running.paceMs * (0.9 + 0.2 * this.#random());
    this.#later(client, Math.max(0, pace - (this.#now - client.burstAt) / 1_000));
  }

  #frame(client: Client, bytes: Buffer, start: number, end: number): void {
    const kind = this.#wire.kind(bytes, start);
    if (kind === delivery) {
      const mark = this.#marks.find(bytes, start, end);
      if (mark < 0) return;
      this.#delivered++;
      this.#delivery.record(elapsed(this.#now, timeAt(bytes, mark)));
      if (this.#wire.reflected && senderAt(bytes, mark) === client.number) this.#confirmed(client);
    } else if (kind === ack) this.#confirmed(client);
    else if (kind === failure) {
      this.#note(bytes.toString('utf8', start, end));
      client.waiting.shift();
      this.#next(client);
    } else this.#wire.other(client, bytes.toString('utf8', start, end));
  }
}
