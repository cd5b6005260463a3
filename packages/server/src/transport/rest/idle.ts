import type { Socket } from 'node:net';

/** A connection may be without a request for this long; a little longer than Node's own time-out, which is more polite. */
export const idleMs = 70_000;

/**
 * Connections between two requests. Node ends one on which no byte came for `keepAliveTimeout`; so an empty line now and then would
 * keep it for ever, and with it the answers that were never read: megabytes of them fit into the kernel's buffers, where nobody
 * sees them.
 */
export class IdleConnections {
  readonly #now: () => number;
  /** Requests under way. */
  readonly #open = new WeakMap<Socket, number>();
  /** Since when each has had none, in this order. */
  readonly #idle = new Map<Socket, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A request began; requests may come before the one before is answered. */
  begin(socket: Socket): void {
    if (!this.#open.has(socket)) socket.once('close', () => this.#idle.delete(socket));
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1);
    this.#idle.delete(socket);
  }

  /** A request was answered, or given up. */
  end(socket: Socket): void {
    const left = this.#open.get(socket)! - 1;
    this.#open.set(socket, left);
    if (left === 0 && !socket.destroyed) this.#idle.set(socket, this.#now());
  }

  /** To be called now and then. A reset, because otherwise the kernel would go on offering what it holds. */
  tick(): void {
    const before = this.#now() - idleMs;
    for (const [socket, since] of this.#idle) {
      if (since > before) break;
      this.#idle.delete(socket);
      socket.resetAndDestroy();
    }
  }
}
