import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server as Listener, Socket } from 'node:net';
import type { Clock } from './clock.ts';
import type { Logger } from './logging.ts';

export interface DoorOptions {
  /** How many connections may be open at once (descriptors.ts); Infinity if nothing bounds them. */
  connections: number;
  /** The key by which connections of one client are counted; null if many clients come from there, as from a proxy. */
  ownerOf: (socket: Socket) => string | null;
  logger: Logger;
  clock: Pick<Clock, 'monotonic'>;
}

/** How many sockets listen on the port. */
const width = 32;
/**
 * The listen queue. After a restart all clients come back at once, and Node's default of 511 would make them wait for
 * TCP retries.
 */
const backlog = 4_096;
/** One address gets no more than this share of all connections. */
const share = 0.75;
const logEveryMs = 60_000;
/** An address that is refused more often than this in a second is not let in for the rest of that second. */
const mostRefusals = 50;
const refusalsMs = 1_000;
/** How many addresses are counted in a second; others are let in. */
const mostRefused = 10_000;

/** On Linux several sockets can listen on one port. In a Node cluster the primary listens, and does nothing else. */
const canBeWide = process.platform === 'linux' && !cluster.isWorker;

/**
 * Accepts connections. Node accepts one connection per listening socket in each turn of its event loop, in order of
 * arrival. So a client that connects 2,000 times makes the next one wait for 2,000 turns, which under load are
 * seconds. Therefore several sockets listen on the port, and the kernel spreads connections over them.
 *
 * Connections beyond the bound are dropped, and so are those of an address that has more than its share. The log says
 * so at most once a minute. Whoever is refused again and again is dropped too: to read its request and to answer it
 * costs many times as much.
 */
export class Door {
  readonly #server: Server;
  readonly #options: DoorOptions;
  /**
   * How many open connections came in through each listener. The first is the server itself, which is handed those of
   * the others.
   */
  readonly #listeners = new Map<Listener, number>();
  readonly #owners = new Map<string, number>();
  /** The listener of the connection that the server is being handed right now. */
  #from: Listener;
  /** How often each address was refused since `#refusedSince`. */
  readonly #refusals = new Map<string, number>();
  #refusedSince = -Infinity;
  #open = 0;
  #dropped = 0;
  #quietUntil = -Infinity;

  constructor(server: Server, options: DoorOptions) {
    this.#server = this.#from = server;
    this.#options = options;
    this.#add(server);
    server.on('connection', (socket: Socket) => {
      const from = this.#from;
      // The others have looked already, before the server saw it.
      if (from !== server || !this.#turnsAway(socket)) this.#admit(socket, from);
    });
  }

  /** Options for the server's own `listen`. */
  async listenOptions(host: string, port: number): Promise<{ backlog: number; reusePort?: true }> {
    if (!canBeWide) return { backlog };
    // With reusePort, another program that listens there would silently share the port with us. Only a socket without
    // it is refused then, so one is tried first.
    if (port !== 0) {
      const alone = createServer();
      await once(alone.listen({ host, port }), 'listening');
      await new Promise((resolve) => alone.close(resolve));
    }
    return { backlog, reusePort: true };
  }

  /** Opens the other listeners once the server listens. */
  async widen(): Promise<void> {
    if (!canBeWide) return;
    const { address: host, port } = this.#server.address() as AddressInfo;
    while (this.#listeners.size < width) {
      const listener = createServer((socket) => {
        if (this.#turnsAway(socket)) return;
        this.#from = listener;
        this.#server.emit('connection', socket);
        this.#from = this.#server;
      });
      this.#add(listener);
      await once(listener.listen({ host, port, backlog, reusePort: true }), 'listening');
    }
  }

  /**
   * Closes the other listeners; resolves when the connections that came in through them have ended. The server closes
   * by itself.
   */
  async close(): Promise<void> {
    const [, ...others] = this.#listeners.keys();
    await Promise.all(others.map((listener) => new Promise((resolve) => listener.close(resolve))));
  }

  /** Must be called when a connection of this owner was let in and then refused. */
  refused(owner: string): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#refusedSince >= refusalsMs) {
      this.#refusals.clear();
      this.#refusedSince = now;
    }
    const before = this.#refusals.get(owner);
    if (before !== undefined || this.#refusals.size < mostRefused)
      this.#refusals.set(owner, (before ?? 0) + 1);
  }

  /** Drops a connection that may not come in, before anything is made for it where that can be. */
  #turnsAway(socket: Socket): boolean {
    const { ownerOf, clock, connections } = this.#options;
    const owner = ownerOf(socket);
    if (owner === null) return false;
    const full = (this.#owners.get(owner) ?? 0) + 1 > connections * share;
    const refused =
      (this.#refusals.get(owner) ?? 0) > mostRefusals && clock.monotonic() - this.#refusedSince < refusalsMs;
    if (full) this.#drop();
    if (full || refused) socket.resetAndDestroy();
    return full || refused;
  }

  #add(listener: Listener): void {
    this.#listeners.set(listener, 0);
    listener.on('drop', () => this.#drop());
    this.#bound();
  }

  #admit(socket: Socket, from: Listener): void {
    const owner = this.#options.ownerOf(socket);
    this.#count(from, owner, 1);
    socket.on('close', () => this.#count(from, owner, -1));
  }

  #count(from: Listener, owner: string | null, change: 1 | -1): void {
    this.#open += change;
    this.#listeners.set(from, this.#listeners.get(from)! + change);
    if (owner !== null) {
      const left = (this.#owners.get(owner) ?? 0) + change;
      if (left > 0) this.#owners.set(owner, left);
      else this.#owners.delete(owner);
    }
    this.#bound();
  }

  /** Node drops connections to a listener that has its `maxConnections`, so each may have what the others leave free. */
  #bound(): void {
    const free = this.#options.connections - this.#open;
    if (free === Infinity) return;
    for (const [listener, own] of this.#listeners) listener.maxConnections = Math.max(0, own + free);
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
