import slotOf from 'cluster-key-slot';
import type { Logger } from '../logging.ts';
import type { RedisConnection } from '../redis.ts';
import type { Bus, BusListener } from './port.ts';
import { createRedisLink } from './redis-link.ts';
import type { RedisLink } from './redis-link.ts';

/** Channels are spread over this many hash tags, so that many of them fit one SSUBSCRIBE. */
const shards = 256;
/** Messages on their way to Redis; further ones are lost, as when Redis is unreachable. */
const maxInFlight = 20_000;
/** The channel on which nodes report that messages of theirs were lost. No other channel has an empty name. */
const lossChannel = nameOf('');
const checkMs = 1_000;
const topologyMs = 5_000;

/** A bus that also says whether messages may be lost at present. */
export interface RedisBus extends Bus {
  readonly connected: boolean;
}

/**
 * A bus over pub/sub of one Redis, or over sharded pub/sub (Redis 7) of a cluster. Losses in both directions are
 * reported: a node that lost its subscriptions gets `restored` when all are back; one that could not publish makes
 * the others get it.
 */
export function redisBus(options: {
  connection: RedisConnection;
  /** Unique among the nodes, without blanks. */
  node: string;
  logger: Logger;
  /** How many milliseconds a subscription waits for an unreachable Redis. */
  waitMs?: number;
}): RedisBus {
  const { connection, logger, waitMs = 1_000 } = options;
  const { client, isCluster } = connection;
  const own = `${options.node} `;
  const subscribed = new Set([lossChannel]);
  const links = new Map<string, RedisLink>();
  /** The link of each hash tag; with a single server all have the same. */
  let routes: string[] = [];
  /** Resolves when the routes are known, or were waited for long enough. */
  const started = Promise.withResolvers<void>();
  const startTimer = setTimeout(started.resolve, waitMs);
  let listener: BusListener | undefined;
  /** True if something published elsewhere may not have arrived here. */
  let missed = false;
  /** True if something published here did not arrive elsewhere. */
  let unsent = false;
  /**
   * True if something published here was not confirmed in time. It counts as lost only if the connection is lost too,
   * not if Redis is merely slow.
   */
  let late = false;
  let inFlight = 0;
  let refreshing = false;
  let checks = 0;
  let noticeTimer: NodeJS.Timeout | undefined;

  /** False while messages may be lost. */
  const connected = (): boolean =>
    client.status === 'ready' && links.size > 0 && links.values().every((link) => link.up);

  async function send(name: string, frame: string): Promise<void> {
    if (client.status !== 'ready' || inFlight >= maxInFlight) {
      unsent = true;
      return;
    }
    inFlight++;
    try {
      await (isCluster ? client.spublish(name, frame) : client.publish(name, frame));
      late = false;
    } catch (error) {
      if (error instanceof Error && error.message === 'Command timed out') late = true;
      else unsent = true;
    } finally {
      inFlight--;
    }
  }

  function receive(name: string, data: string): void {
    if (data.startsWith(own) || !subscribed.has(name)) return;
    if (name === lossChannel) return notice();
    const channel = name.slice(name.indexOf('}') + 1);
    const payload = data.slice(data.indexOf(' ') + 1);
    try {
      listener?.message(channel, payload);
    } catch (error) {
      logger.error({ err: error }, 'a bus message failed');
    }
  }

  const cut = (): void => {
    if (late) unsent = true;
    late = false;
  };

  /** Many nodes lose and find Redis together, so notices that arrive together count as one. */
  function notice(): void {
    noticeTimer ??= setTimeout(() => {
      noticeTimer = undefined;
      missed = true;
      restored();
    }, checkMs).unref();
  }

  function restored(): void {
    if (!missed || !connected()) return;
    missed = false;
    listener?.restored();
  }

  function check(): void {
    restored();
    if (unsent && connected()) {
      unsent = false;
      void send(lossChannel, own);
    }
    const due = ++checks % (topologyMs / checkMs) === 0;
    if (isCluster && (due || !connected())) refresh();
  }

  function linkOf(key: string): RedisLink {
    let link = links.get(key);
    if (link) return link;
    const at = key.lastIndexOf(':');
    const server = key === '' ? undefined : { host: key.slice(0, at), port: Number(key.slice(at + 1)) };
    link = createRedisLink(connection.subscriber(server), isCluster, waitMs, {
      message: receive,
      up: restored,
      down: () => (missed = true),
      moved: refresh,
    });
    links.set(key, link);
    return link;
  }

  /**
   * Cluster: reads which server has which hash tag. Channels that moved are subscribed at their new server, and what
   * they missed is reported.
   */
  const refresh = (): void => void readTopology();

  async function readTopology(): Promise<void> {
    if (refreshing || client.status !== 'ready') return;
    refreshing = true;
    try {
      const owners = ownersOf(await client.cluster('SLOTS'));
      const found = Array.from({ length: shards }, (_, shard) => owners(slotOf(String(shard))));
      if (found.includes(undefined)) return;
      reroute(found as string[]);
    } catch {
      // check tries again, too.
      if (routes.length === 0) setTimeout(refresh, 100).unref();
    } finally {
      refreshing = false;
    }
  }

  function start(): void {
    clearTimeout(startTimer);
    started.resolve();
  }

  function reroute(next: string[]): void {
    const before = routes;
    if (next.every((key, shard) => key === before[shard])) return;
    routes = next;
    start();
    const moved = [...subscribed].filter((name) => next[shardOf(name)] !== before[shardOf(name)]);
    if (before.length > 0 && moved.length > 0) missed = true;
    for (const [key, link] of [...links]) {
      if (next.includes(key)) {
        link.unsubscribe(moved.filter((name) => before[shardOf(name)] === key));
      } else {
        link.close();
        links.delete(key);
      }
    }
    for (const [key, names] of Map.groupBy(moved, (name) => next[shardOf(name)]!))
      void linkOf(key).subscribe(names);
  }

  client.on('close', cut);
  client.on('-node', cut);
  if (isCluster) {
    client.on('ready', refresh);
    client.on('+node', refresh);
    refresh();
  } else reroute(new Array<string>(shards).fill(''));
  const timer = setInterval(check, checkMs).unref();

  return {
    alone: false,
    get connected() {
      return connected();
    },
    listen: (given) => (listener = given),
    publish: (channel, payload) => void send(nameOf(channel), own + payload),
    async subscribe(channels) {
      const names = channels.map(nameOf);
      for (const name of names) subscribed.add(name);
      await started.promise;
      const groups = Map.groupBy(names, (name) => routes[shardOf(name)]);
      const done = await Promise.all(
        [...groups].map(([key, group]) =>
          key === undefined ? Promise.resolve(false) : linkOf(key).subscribe(group),
        ),
      );
      if (done.includes(false)) missed = true;
    },
    unsubscribe(channels) {
      const names = channels.map(nameOf).filter((name) => subscribed.delete(name));
      for (const [key, group] of Map.groupBy(names, (name) => routes[shardOf(name)]))
        if (key !== undefined) links.get(key)?.unsubscribe(group);
    },
    close() {
      clearInterval(timer);
      clearTimeout(noticeTimer);
      start();
      for (const event of ['close', '-node']) client.removeListener(event, cut);
      for (const event of ['ready', '+node']) client.removeListener(event, refresh);
      for (const link of links.values()) link.close();
      links.clear();
      subscribed.clear();
      return Promise.resolve();
    },
  };
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
