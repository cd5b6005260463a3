import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server as Listener, Socket } from 'node:net';
import type { Clock } from './clock.ts';
import { CountsByKey } from './flow/counts-by-key.ts';
import { CountsPerSecond } from './flow/counts-per-second.ts';
import type { Logger } from './logging.ts';

export interface AcceptorOptions {
  /** How many connections may be open at once (descriptors.ts); Infinity if nothing bounds them. */
  connections: number;
  /** The key by which connections of one client are counted; null if many clients share the address, as behind a proxy. */
  ownerOf: (socket: Socket) => string | null;
  logger: Logger;
  clock: Pick<Clock, 'monotonic'>;
}

/**
 * The listen queue. After a restart all clients come back at once, and Node's default of 511 would make them wait for
 * TCP retries.
 */
const backlog = 4_096;
/** How many sockets listen on the port. */
const width = 32;
/** On Linux several sockets can listen on one port. In a Node cluster the primary listens, and does nothing else. */
const canBeWide = process.platform === 'linux' && !cluster.isWorker;
/** One address gets no more than this share of all connections. */
const share = 0.75;
const logEveryMs = 60_000;
/** An address that is refused more often than this in a second is not accepted for the rest of that second. */
const mostRefusals = 50;
/** How many addresses are counted in a second; others are accepted. */
const mostRefused = 10_000;

/**
 * Bounds the connections of a server: in all, and per address. A connection beyond a bound is dropped before its request
 * is read; the log says so at most once a minute. An address that was refused again and again is dropped too, because
 * reading its request and answering it costs many times as much.
 *
 * Node accepts one connection per listening socket in each turn of its event loop, in order of arrival, so a client that
 * connects 2,000 times would make the next one wait for 2,000 turns. Therefore several sockets listen on the port, and
 * the kernel spreads connections over them.
 */
export class ConnectionAcceptor {
  readonly #server: Server;
  readonly #options: AcceptorOptions;
  /** The listeners beside the server, which is handed their connections. */
  readonly #listeners: Listener[] = [];
  readonly #owners = new CountsByKey<string>();
  readonly #refusals: CountsPerSecond;
  #open = 0;
  #dropped = 0;
  #quietUntil = -Infinity;

  constructor(server: Server, options: AcceptorOptions) {
    this.#options = options;
    this.#refusals = new CountsPerSecond(mostRefused, () => options.clock.monotonic());
    this.#server = server;
    server.on('connection', (socket: Socket) => this.#accept(socket));
  }

  async listen(host: string, port: number, listen: (how: object) => Promise<unknown>): Promise<void> {
    if (!canBeWide) return void (await listen({ host, port, backlog }));
    // With reusePort another program that listens there would silently share the port. Only a socket without it is
    // refused then, so one is tried first.
    if (port !== 0) {
      const alone = createServer();
      await once(alone.listen({ host, port }), 'listening');
      await new Promise((resolve) => alone.close(resolve));
    }
    await listen({ host, port, backlog, reusePort: true });
    const { address, port: taken } = this.#server.address() as AddressInfo;
    while (this.#listeners.length < width - 1) {
      // The options are those of an HTTP server.
      const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
        this.#server.emit('connection', socket),
      );
      this.#listeners.push(listener);
      await once(listener.listen({ host: address, port: taken, backlog, reusePort: true }), 'listening');
    }
  }

  /** Closes the listeners beside the server; resolves when their connections have ended. The server closes by itself. */
  async close(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => new Promise((resolve) => listener.close(resolve))));
  }

  /** Must be called when a connection of this owner was accepted and then refused. */
  refused(owner: string): void {
    this.#refusals.add(owner);
  }

  #accept(socket: Socket): void {
    const owner = this.#options.ownerOf(socket);
    if (this.#isOver(owner)) {
      socket.resetAndDestroy();
      return;
    }
    this.#count(owner, 1);
    socket.on('close', () => this.#count(owner, -1));
  }

  #isOver(owner: string | null): boolean {
    const { connections } = this.#options;
    const own = owner === null ? 0 : this.#owners.of(owner) + 1;
    if (this.#open >= connections || own > connections * share) {
      this.#drop();
      return true;
    }
    return owner !== null && this.#refusals.of(owner) > mostRefusals;
  }

  #count(owner: string | null, change: 1 | -1): void {
    this.#open += change;
    if (owner !== null) this.#owners.add(owner, change);
  }

  #drop(): void {
    const { clock, logger, connections } = this.#options;
    this.#dropped++;
    if (clock.monotonic() < this.#quietUntil) return;
    this.#quietUntil = clock.monotonic() + logEveryMs;
    logger.warn(
      { connections, open: this.#open, dropped: this.#dropped },
      'connections are dropped: descriptors would run out (ulimit -n)',
    );
    this.#dropped = 0;
  }
}
