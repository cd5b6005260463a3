import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server as Listener, Socket } from 'node:net';
import type { Clock } from './clock.ts';
import type { Logger } from './logging.ts';

export interface DoorOptions {
  /** Connections that may be open at once (descriptors.ts); Infinity where nothing bounds them. */
  connections: number;
  /** By what the other side of a connection is known; null: many come from there, as from a proxy. */
  ownerOf: (socket: Socket) => string | null;
  logger: Logger;
  clock: Pick<Clock, 'monotonic'>;
}

/** Listeners on the port. */
const width = 32;
/** After a restart all clients come back at once; Node's own backlog of 511 would make them wait for TCP. */
const backlog = 4_096;
/** One address gets no more than this share of all connections. */
const share = 0.75;
const logEveryMs = 60_000;

/** Several sockets can listen on one port; in a cluster it is the primary that listens, and it does nothing else. */
const canBeWide = process.platform === 'linux' && !cluster.isWorker;

/**
 * Where connections come in. Node accepts one of them in each turn of its event loop, in their order; so somebody who dials
 * 2,000 times makes the next one wait for 2,000 turns, which under load are seconds. Therefore several sockets listen on the port,
 * and the kernel spreads connections over them.
 *
 * Connections beyond the bound are dropped, and so are those of an address that has most of them. The log says so at most once a
 * minute.
 */
export class Door {
  readonly #server: Server;
  readonly #options: DoorOptions;
  /** How many connections came in by each listener. The first is the server itself, which is given those of the others. */
  readonly #listeners = new Map<Listener, number>();
  readonly #owners = new Map<string, number>();
  /** By which the connection comes in that the server is given at this moment. */
  #from: Listener;
  #open = 0;
  #dropped = 0;
  #quietUntil = -Infinity;

  constructor(server: Server, options: DoorOptions) {
    this.#server = this.#from = server;
    this.#options = options;
    this.#add(server);
    server.on('connection', (socket: Socket) => this.#admit(socket, this.#from));
  }

  /** What the server itself is to listen with. */
  async listenOptions(host: string, port: number): Promise<{ backlog: number; reusePort?: true }> {
    if (!canBeWide) return { backlog };
    // Whoever listens there too would share the port with us, silently: only a socket that wants it alone is refused.
    if (port !== 0) {
      const alone = createServer();
      await once(alone.listen({ host, port }), 'listening');
      await new Promise((resolve) => alone.close(resolve));
    }
    return { backlog, reusePort: true };
  }

  /** The server listens: the others join it. */
  async widen(): Promise<void> {
    if (!canBeWide) return;
    const { address: host, port } = this.#server.address() as AddressInfo;
    while (this.#listeners.size < width) {
      const listener = createServer((socket) => {
        this.#from = listener;
        this.#server.emit('connection', socket);
        this.#from = this.#server;
      });
      this.#add(listener);
      await once(listener.listen({ host, port, backlog, reusePort: true }), 'listening');
    }
  }

  /** Resolves when the connections that came in by the others have ended; the server closes by itself. */
  async close(): Promise<void> {
    const [, ...others] = this.#listeners.keys();
    await Promise.all(others.map((listener) => new Promise((resolve) => listener.close(resolve))));
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
    if (owner === null || this.#owners.get(owner)! <= this.#options.connections * share) return;
    this.#drop();
    socket.resetAndDestroy();
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

  /** Node drops what comes to a listener that has its `maxConnections`: each may have what the others leave. */
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
