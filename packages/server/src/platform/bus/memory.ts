import type { Bus, BusListener } from './port.ts';

/** Connects nodes inside one process: the only node of a service with one process, or several in tests. */
export class MemoryBroker {
  readonly #subscribers = new Map<string, Set<MemoryBus>>();
  #nodes = 0;

  bus(): Bus {
    this.#nodes++;
    return new MemoryBus(this);
  }

  publish(from: MemoryBus, channel: string, payload: string): void {
    for (const bus of this.#subscribers.get(channel) ?? []) if (bus !== from) bus.receive(channel, payload);
  }

  add(bus: MemoryBus, channel: string): void {
    let set = this.#subscribers.get(channel);
    if (!set) this.#subscribers.set(channel, (set = new Set()));
    set.add(bus);
  }

  remove(bus: MemoryBus, channel: string): void {
    const set = this.#subscribers.get(channel);
    set?.delete(bus);
    if (set?.size === 0) this.#subscribers.delete(channel);
  }

  left(bus: MemoryBus, channels: Iterable<string>): void {
    for (const channel of channels) this.remove(bus, channel);
    this.#nodes--;
  }

  get alone(): boolean {
    return this.#nodes === 1;
  }
}

class MemoryBus implements Bus {
  readonly #broker: MemoryBroker;
  readonly #channels = new Set<string>();
  #listener: BusListener | undefined;

  constructor(broker: MemoryBroker) {
    this.#broker = broker;
  }

  get alone(): boolean {
    return this.#broker.alone;
  }

  listen(listener: BusListener): void {
    this.#listener = listener;
  }

  publish(channel: string, payload: string): void {
    this.#broker.publish(this, channel, payload);
  }

  receive(channel: string, payload: string): void {
    queueMicrotask(() => {
      if (this.#channels.has(channel)) this.#listener?.message(channel, payload);
    });
  }

  subscribe(channels: readonly string[]): Promise<void> {
    for (const channel of channels) {
      this.#channels.add(channel);
      this.#broker.add(this, channel);
    }
    return Promise.resolve();
  }

  unsubscribe(channels: readonly string[]): void {
    for (const channel of channels) {
      this.#channels.delete(channel);
      this.#broker.remove(this, channel);
    }
  }

  close(): Promise<void> {
    this.#broker.left(this, this.#channels);
    this.#channels.clear();
    return Promise.resolve();
  }
}
