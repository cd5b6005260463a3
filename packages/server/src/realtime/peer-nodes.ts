import { channels } from '../features/node-bus.ts';
import type { NodeBus } from '../features/node-bus.ts';
import type { Clock } from '../platform/clock.ts';

/** A node that was silent for this many milliseconds, which are four beats, counts as gone. */
const silentMs = 4_000;
/** Milliseconds; a commit that a node began before it died may still take a while in PostgreSQL. */
const againMs = 10_000;
/** Far more nodes than a service has; any more are not watched. */
const maxNodes = 1_000;

/**
 * The other nodes, known by their beats. A node that falls silent may have died between a commit and its
 * announcement. So `onSilent` lets the others look into the store: at once, and again when no commit of it can still be
 * running. For a node that only paused, this costs a look.
 */
export class PeerNodes {
  readonly #bus: NodeBus;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #heard = new Map<string, number>();
  readonly #again: number[] = [];
  readonly #onSilent: () => void;

  constructor(options: { bus: NodeBus; clock: Clock; node: string; onSilent: () => void }) {
    this.#bus = options.bus;
    this.#clock = options.clock;
    this.#node = options.node;
    this.#onSilent = options.onSilent;
    this.#bus.on('beat', (node) => this.#heardOf(node));
  }

  /** A new node gets an answer at once. */
  #heardOf(node: string): void {
    const isNew = !this.#heard.has(node);
    if (isNew && this.#heard.size >= maxNodes) return;
    this.#heard.set(node, this.#clock.monotonic());
    if (isNew) this.beat();
  }

  /** True if no other node was heard lately. */
  get alone(): boolean {
    return [...this.#heard.keys()].every((node) => node === this.#node);
  }

  beat(): void {
    this.#bus.publish('beat', this.#node, channels.allNodes);
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
    if (look) this.#onSilent();
  }
}
