import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';
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
export const backlog = 4_096;
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
 */
export class ConnectionAcceptor {
  readonly #options: AcceptorOptions;
  readonly #owners = new Map<string, number>();
  readonly #refusals: CountsPerSecond;
  #open = 0;
  #dropped = 0;
  #quietUntil = -Infinity;

  constructor(server: Server, options: AcceptorOptions) {
    this.#options = options;
    this.#refusals = new CountsPerSecond(mostRefused, () => options.clock.monotonic());
    if (options.connections !== Infinity) server.maxConnections = options.connections;
    server.on('drop', () => this.#drop());
    server.on('connection', (socket: Socket) => this.#accept(socket));
  }

  /** Must be called when a connection of this owner was accepted and then refused. */
  refused(owner: string): void {
    this.#refusals.add(owner);
  }

  #accept(socket: Socket): void {
    const owner = this.#options.ownerOf(socket);
    if (owner !== null && this.#isOver(owner)) {
      socket.resetAndDestroy();
      return;
    }
    this.#count(owner, 1);
    socket.on('close', () => this.#count(owner, -1));
  }

  #isOver(owner: string): boolean {
    if ((this.#owners.get(owner) ?? 0) + 1 > this.#options.connections * share) {
      this.#drop();
      return true;
    }
    return this.#refusals.of(owner) > mostRefusals;
  }

  #count(owner: string | null, change: 1 | -1): void {
    this.#open += change;
    if (owner === null) return;
    const left = (this.#owners.get(owner) ?? 0) + change;
    if (left > 0) this.#owners.set(owner, left);
    else this.#owners.delete(owner);
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
