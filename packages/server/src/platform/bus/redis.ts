import slotOf from 'cluster-key-slot';
import type { Logger } from '../logging.ts';
import type { RedisConnection } from '../redis.ts';
import type { Bus, BusListener } from './port.ts';
import { RedisLink } from './redis-link.ts';

/** Channels are spread over this many hash tags, so that many of them fit one SSUBSCRIBE. */
const shards = 256;
/** Messages on their way to Redis; further ones are lost, as when Redis is unreachable. */
const maxInFlight = 20_000;
/** The channel on which nodes report that messages of theirs were lost. No other channel has an empty name. */
const lossChannel = nameOf('');
const checkMs = 1_000;
const topologyMs = 5_000;

export interface RedisBusOptions {
  connection: RedisConnection;
  /** Unique among the nodes, without blanks. */
  node: string;
  logger: Logger;
  /** How many milliseconds a subscription waits for an unreachable Redis. */
  waitMs?: number;
}

/**
 * A bus over pub/sub of one Redis, or over sharded pub/sub (Redis 7) of a cluster. Losses in both directions are
 * reported: a node that lost its subscriptions gets `restored` when all are back; one that could not publish makes
 * the others get it.
 */
export class RedisBus implements Bus {
  readonly alone = false;
  readonly #connection: RedisConnection;
  readonly #logger: Logger;
  readonly #own: string;
  readonly #waitMs: number;
  readonly #channels = new Set<string>();
  readonly #links = new Map<string, RedisLink>();
  /** The link of each hash tag; with a single server all have the same. */
  #routes: string[] = [];
  /** Resolves when the routes are known, or were waited for long enough. */
  readonly #started = Promise.withResolvers<void>();
  readonly #startTimer: NodeJS.Timeout;
  #listener: BusListener | undefined;
  /** True if something published elsewhere may not have arrived here. */
  #missed = false;
  /** True if something published here did not arrive elsewhere. */
  #unsent = false;
  /**
   * True if something published here was not confirmed in time. It counts as lost only if the connection is lost too,
   * not if Redis is merely slow.
   */
  #late = false;
  #inFlight = 0;
  #refreshing = false;
  #refreshedAt = 0;
  #noticeTimer: NodeJS.Timeout | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(options: RedisBusOptions) {
    this.#connection = options.connection;
    this.#logger = options.logger;
    this.#own = `${options.node} `;
    this.#waitMs = options.waitMs ?? 1_000;
    this.#channels.add(lossChannel);
    this.#startTimer = setTimeout(() => this.#started.resolve(), this.#waitMs);
    this.#connection.client.on('close', this.#cut);
    this.#connection.client.on('-node', this.#cut);
    if (this.#connection.isCluster) {
      this.#connection.client.on('ready', this.#refresh);
      this.#connection.client.on('+node', this.#refresh);
      this.#refresh();
    } else {
      this.#reroute(new Array<string>(shards).fill(''));
    }
    this.#timer = setInterval(() => this.#check(), checkMs).unref();
  }

  listen(listener: BusListener): void {
    this.#listener = listener;
  }

  /** False while messages may be lost. */
  get connected(): boolean {
    if (this.#connection.client.status !== 'ready' || this.#links.size === 0) return false;
    for (const link of this.#links.values()) if (!link.up) return false;
    return true;
  }

  publish(channel: string, payload: string): void {
    void this.#publish(nameOf(channel), this.#own + payload);
  }

  async #publish(name: string, frame: string): Promise<void> {
    const { client, isCluster } = this.#connection;
    if (client.status !== 'ready' || this.#inFlight >= maxInFlight) {
      this.#unsent = true;
      return;
    }
    this.#inFlight++;
    try {
      await (isCluster ? client.spublish(name, frame) : client.publish(name, frame));
      this.#late = false;
    } catch (error) {
      if (error instanceof Error && error.message === 'Command timed out') this.#late = true;
      else this.#unsent = true;
    } finally {
      this.#inFlight--;
    }
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    const names = channels.map(nameOf);
    for (const name of names) this.#channels.add(name);
    await this.#started.promise;
    const groups = Map.groupBy(names, (name) => this.#routes[shardOf(name)]);
    const done = await Promise.all(
      [...groups].map(([key, group]) =>
        key === undefined ? Promise.resolve(false) : this.#link(key).subscribe(group),
      ),
    );
    if (done.includes(false)) this.#missed = true;
  }

  unsubscribe(channels: readonly string[]): void {
    const names = channels.map(nameOf).filter((name) => this.#channels.delete(name));
    for (const [key, group] of Map.groupBy(names, (name) => this.#routes[shardOf(name)]))
      if (key !== undefined) this.#links.get(key)?.unsubscribe(group);
  }

  close(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#noticeTimer);
    this.#start();
    this.#connection.client.removeListener('close', this.#cut);
    this.#connection.client.removeListener('-node', this.#cut);
    this.#connection.client.removeListener('ready', this.#refresh);
    this.#connection.client.removeListener('+node', this.#refresh);
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
    this.#channels.clear();
    return Promise.resolve();
  }

  #receive(name: string, data: string): void {
    if (data.startsWith(this.#own) || !this.#channels.has(name)) return;
    if (name === lossChannel) return this.#notice();
    const channel = name.slice(name.indexOf('}') + 1);
    const payload = data.slice(data.indexOf(' ') + 1);
    try {
      this.#listener?.message(channel, payload);
    } catch (error) {
      this.#logger.error({ err: error }, 'a bus message failed');
    }
  }

  readonly #cut = (): void => {
    if (this.#late) this.#unsent = true;
    this.#late = false;
  };

  /** Many nodes lose and find Redis together, so notices that arrive together count as one. */
  #notice(): void {
    this.#noticeTimer ??= setTimeout(() => {
      this.#noticeTimer = undefined;
      this.#missed = true;
      this.#restored();
    }, checkMs).unref();
  }

  #restored(): void {
    if (!this.#missed || !this.connected) return;
    this.#missed = false;
    this.#listener?.restored();
  }

  #check(): void {
    this.#restored();
    if (this.#unsent && this.connected) {
      this.#unsent = false;
      void this.#publish(lossChannel, this.#own);
    }
    const due = ++this.#refreshedAt % (topologyMs / checkMs) === 0;
    if (this.#connection.isCluster && (due || !this.connected)) this.#refresh();
  }

  #link(key: string): RedisLink {
    let link = this.#links.get(key);
    if (link) return link;
    const at = key.lastIndexOf(':');
    link = new RedisLink({
      redis: this.#connection.subscriber(
        key === '' ? undefined : { host: key.slice(0, at), port: Number(key.slice(at + 1)) },
      ),
      sharded: this.#connection.isCluster,
      waitMs: this.#waitMs,
      events: {
        message: (name, data) => this.#receive(name, data),
        up: () => this.#restored(),
        down: () => {
          this.#missed = true;
        },
        moved: () => this.#refresh(),
      },
    });
    this.#links.set(key, link);
    return link;
  }

  /**
   * Cluster: reads which server has which hash tag. Channels that moved are subscribed at their new server, and what
   * they missed is reported.
   */
  readonly #refresh = (): void => {
    void this.#readTopology();
  };

  async #readTopology(): Promise<void> {
    if (this.#refreshing || this.#connection.client.status !== 'ready') return;
    this.#refreshing = true;
    try {
      const owners = ownersOf(await this.#connection.client.cluster('SLOTS'));
      const routes = Array.from({ length: shards }, (_, shard) => owners(slotOf(String(shard))));
      if (routes.includes(undefined)) return;
      this.#reroute(routes as string[]);
    } catch {
      // #check tries again, too.
      if (this.#routes.length === 0) setTimeout(this.#refresh, 100).unref();
    } finally {
      this.#refreshing = false;
    }
  }

  #start(): void {
    clearTimeout(this.#startTimer);
    this.#started.resolve();
  }

  #reroute(routes: string[]): void {
    const before = this.#routes;
    if (routes.every((key, shard) => key === before[shard])) return;
    this.#routes = routes;
    this.#start();
    const moved = [...this.#channels].filter((name) => routes[shardOf(name)] !== before[shardOf(name)]);
    if (before.length > 0 && moved.length > 0) this.#missed = true;
    for (const [key, link] of [...this.#links]) {
      if (routes.includes(key)) {
        link.unsubscribe(moved.filter((name) => before[shardOf(name)] === key));
      } else {
        link.close();
        this.#links.delete(key);
      }
    }
    for (const [key, names] of Map.groupBy(moved, (name) => routes[shardOf(name)]!))
      void this.#link(key).subscribe(names);
  }
}

/** The hash tag of a channel is one of `shards` numbers. */
function nameOf(channel: string): string {
  return `b{${slotOf(channel) % shards}}${channel}`;
}

const shardOf = (name: string): number => Number(name.slice(2, name.indexOf('}')));

/** Reads CLUSTER SLOTS: [first, last, [host, port, …master], …replicas]. */
function ownersOf(reply: unknown): (slot: number) => string | undefined {
  const ranges = (reply as [number, number, [string, number]][]).map(([first, last, [host, port]]) => ({
    first,
    last,
    key: `${host}:${port}`,
  }));
  return (slot) => ranges.find(({ first, last }) => first <= slot && slot <= last)?.key;
}
