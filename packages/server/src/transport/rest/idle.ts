import type { Socket } from 'node:net';

/**
 * Milliseconds that a connection may be without a request; slightly longer than Node's own time-out, which closes
 * more politely.
 */
export const idleMs = 70_000;

/**
 * Connections between two requests. Node closes a connection on which no byte came for `keepAliveTimeout`. So a
 * client that sends an empty line now and then could keep it for ever, with answers that were never read: megabytes
 * of them fit into the kernel's buffers, where we cannot see them.
 */
export class IdleConnections {
  readonly #now: () => number;
  /** How many requests of each connection are running. */
  readonly #open = new WeakMap<Socket, number>();
  /** Since when each connection has been without a request, in this order. */
  readonly #idle = new Map<Socket, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A request began; a client may send one before the last one is answered. */
  begin(socket: Socket): void {
    if (!this.#open.has(socket)) socket.once('close', () => this.#idle.delete(socket));
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    this.#idle.delete(socket);
  }

  /** A request was answered or given up. */
  end(socket: Socket): void {
    const left = this.#open.get(socket)! - 1;
    this.#open.set(socket, left);
    if (left === 0 && !socket.destroyed) this.#idle.set(socket, this.#now());
  }

  /** Must be called regularly. It resets connections, because otherwise the kernel would keep offering what it holds. */
  tick(): void {
    const before = this.#now() - idleMs;
    for (const [socket, since] of this.#idle) {
      if (since > before) break;
      this.#idle.delete(socket);
      socket.resetAndDestroy();
    }
  }
}
