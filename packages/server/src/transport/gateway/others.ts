import type { Bus } from '../../platform/bus/port.ts';
import type { Clock } from '../../platform/clock.ts';

/** Where every node says that it is there. */
export const nodesChannel = 'n:all';
/** Four beats. */
const silentMs = 4_000;
/** A commit that a node began as it died may still take a while in PostgreSQL. */
const againMs = 10_000;
/** Far more than a service has; the others are not watched. */
const maxNodes = 1_000;

/**
 * The other nodes, as their beats tell. One that falls silent may have died between a commit and telling of it, so `onGone` lets the
 * rest look into the store: at once, and again when nothing of it can be under way any more. A node that only paused costs a look.
 */
export class Others {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #heard = new Map<string, number>();
  readonly #again: number[] = [];
  onGone: () => void = () => undefined;

  constructor(options: { bus: Bus; clock: Clock; node: string }) {
    this.#bus = options.bus;
    this.#clock = options.clock;
    this.#node = options.node;
  }

  /** Whoever is new is answered at once. */
  heard(node: string): void {
    const isNew = !this.#heard.has(node);
    if (isNew && this.#heard.size >= maxNodes) return;
    this.#heard.set(node, this.#clock.monotonic());
    if (isNew) this.beat();
  }

  beat(): void {
    if (!this.#bus.alone) this.#bus.publish(nodesChannel, `B${this.#node}`);
  }

  /** Called every second. */
  tick(): void {
    this.beat();
    const now = this.#clock.monotonic();
    let look = false;
    for (const [node, at] of this.#heard) {
      if (now - at < silentMs) continue;
      this.#heard.delete(node);
      this.#again.push(now + againMs);
      look = true;
    }
    while (this.#again.length > 0 && this.#again[0]! <= now) {
      this.#again.shift();
      look = true;
    }
    if (look) this.onGone();
  }
}
