import type { Redis } from 'ioredis';

/** Channels per SUBSCRIBE command, and commands that run at once. */
const maxChannels = 500;
const maxCommands = 32;
/** A connection that is silent for this many milliseconds is tested with a PING. */
const pingMs = 5_000;

export interface LinkEvents {
  message(name: string, data: string): void;
  /** All wanted channels are subscribed, for the first time or again. */
  up(): void;
  down(): void;
  /** The server says that another server has the channel now. */
  moved(): void;
}

/** The subscriptions that one server carries. All of them are subscribed again whenever the connection is back. */
export class RedisLink {
  readonly #redis: Redis;
  readonly #sharded: boolean;
  readonly #waitMs: number;
  readonly #events: LinkEvents;
  readonly #wanted = new Set<string>();
  /** Channels that are wanted but not yet requested. */
  #todo = new Set<string>();
  #waiters: (() => void)[] = [];
  #draining = false;
  #ready = false;
  #up = false;
  #closed = false;
  /** True if the connection was lost for longer than callers wait for it. */
  #away = false;
  #awayTimer: NodeJS.Timeout | undefined;
  readonly #pingTimer: NodeJS.Timeout;

  constructor(options: { redis: Redis; sharded: boolean; waitMs: number; events: LinkEvents }) {
    const { redis, sharded, events } = options;
    this.#redis = redis;
    this.#sharded = sharded;
    this.#waitMs = options.waitMs;
    this.#events = events;
    redis.on(sharded ? 'smessage' : 'message', (name: string, data: string) => events.message(name, data));
    redis.on('moved', () => {
      events.moved();
      this.#reconnect();
    });
    redis.on('ready', () => this.#onReady());
    redis.on('close', () => this.#onClose());
    this.#pingTimer = setInterval(() => {
      if (this.#ready) redis.ping().catch(() => this.#reconnect());
    }, pingMs).unref();
    this.#awaitReturn();
    if (redis.status === 'ready') this.#onReady();
  }

  get up(): boolean {
    return this.#up;
  }

  /** Resolves to false if the connection stays away; the channels are then subscribed when it is back. */
  subscribe(names: readonly string[]): Promise<boolean> {
    for (const name of names) {
      if (this.#wanted.has(name)) continue;
      this.#wanted.add(name);
      this.#todo.add(name);
    }
    return this.#settled();
  }

  async #settled(): Promise<boolean> {
    if (this.#away || this.#closed) return false;
    if (this.#todo.size === 0 && !this.#draining) return this.#up;
    const waiting = new Promise<void>((resolve) => this.#waiters.push(resolve));
    void this.#drain();
    await waiting;
    return this.#up;
  }

  unsubscribe(names: readonly string[]): void {
    for (const name of names) {
      this.#wanted.delete(name);
      this.#todo.delete(name);
    }
    if (!this.#ready) return;
    for (const batch of this.#batches(names)) {
      const done = this.#sharded ? this.#redis.sunsubscribe(...batch) : this.#redis.unsubscribe(...batch);
      // At worst the server keeps sending messages that are ignored here.
      done.catch(() => undefined);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#pingTimer);
    clearTimeout(this.#awayTimer);
    this.#release();
    this.#redis.removeAllListeners('message').removeAllListeners('smessage').removeAllListeners('moved');
    this.#redis.disconnect();
  }

  #onReady(): void {
    if (this.#closed) return;
    this.#ready = true;
    this.#todo = new Set(this.#wanted);
    void this.#drain();
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#ready = false;
    if (this.#up) {
      this.#up = false;
      this.#events.down();
    }
    this.#awaitReturn();
  }

  #awaitReturn(): void {
    if (this.#away) return;
    this.#awayTimer ??= setTimeout(() => {
      this.#awayTimer = undefined;
      this.#away = true;
      this.#release();
    }, this.#waitMs);
  }

  #release(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Starts over with a new connection: after a failure it is unknown which commands the server executed. */
  #reconnect(): void {
    if (this.#ready) this.#redis.disconnect(true);
  }

  async #drain(): Promise<void> {
    if (this.#draining) return;
    this.#draining = true;
    try {
      while (this.#ready && (this.#todo.size > 0 || this.#waiters.length > 0 || !this.#up)) {
        const waiters = this.#waiters;
        this.#waiters = [];
        const names = [...this.#todo];
        this.#todo.clear();
        try {
          await this.#send(names);
        } catch (error) {
          this.#waiters = [...waiters, ...this.#waiters];
          if (error instanceof Error && error.message.startsWith('MOVED')) this.#events.moved();
          this.#reconnect();
          return;
        }
        this.#isUp();
        for (const resolve of waiters) resolve();
      }
    } finally {
      this.#draining = false;
    }
  }

  #isUp(): void {
    clearTimeout(this.#awayTimer);
    this.#awayTimer = undefined;
    this.#away = false;
    if (this.#up || !this.#ready) return;
    this.#up = true;
    this.#events.up();
  }

  async #send(names: readonly string[]): Promise<void> {
    const batches = [...this.#batches(names)];
    for (let i = 0; i < batches.length; i += maxCommands)
      await Promise.all(
        batches
          .slice(i, i + maxCommands)
          .map((batch) =>
            this.#sharded ? this.#redis.ssubscribe(...batch) : this.#redis.subscribe(...batch),
          ),
      );
  }

  /** In a cluster, the channels of a command must be in one slot: they share a hash tag. */
  *#batches(names: readonly string[]): Generator<string[]> {
    const groups = this.#sharded
      ? Map.groupBy(names, (name) => name.slice(0, name.indexOf('}')))
      : [['', names] as const];
    for (const [, group] of groups)
      for (let i = 0; i < group.length; i += maxChannels) yield group.slice(i, i + maxChannels);
  }
}
