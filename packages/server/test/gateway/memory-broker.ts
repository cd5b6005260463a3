import type { Bus, BusListener } from '../../src/platform/bus/port.ts';

/** Connects nodes inside one process. */
export class MemoryBroker {
  readonly #nodes = new Set<MemoryBus>();

  bus(): Bus {
    const bus = new MemoryBus(this.#nodes);
    this.#nodes.add(bus);
    return bus;
  }
}

class MemoryBus implements Bus {
  readonly #nodes: Set<MemoryBus>;
  readonly #channels = new Set<string>();
  #listener: BusListener | undefined;

  constructor(nodes: Set<MemoryBus>) {
    this.#nodes = nodes;
  }

  get alone(): boolean {
    return this.#nodes.size === 1;
  }

  listen(listener: BusListener): void {
    this.#listener = listener;
  }

  publish(channel: string, payload: string): void {
    for (const bus of this.#nodes) if (bus !== this) bus.#receive(channel, payload);
  }

  #receive(channel: string, payload: string): void {
    if (!this.#channels.has(channel)) return;
    queueMicrotask(() => {
      if (this.#channels.has(channel)) this.#listener?.message(channel, payload);
    });
  }

  subscribe(channels: readonly string[]): Promise<void> {
    for (const channel of channels) this.#channels.add(channel);
    return Promise.resolve();
  }

  unsubscribe(channels: readonly string[]): void {
    for (const channel of channels) this.#channels.delete(channel);
  }

  close(): Promise<void> {
    this.#nodes.delete(this);
    this.#channels.clear();
    return Promise.resolve();
  }
}
