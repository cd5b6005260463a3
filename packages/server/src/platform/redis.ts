import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import type { Logger } from './logging.ts';

/**
 * Connections to one Redis (or Valkey) or to a Redis Cluster. Nothing waits for an unreachable Redis: commands fail
 * at once or within a second, nothing is queued or repeated, and reconnecting is tried for ever with a bounded pause.
 */
export interface RedisConnection {
  readonly client: Redis | Cluster;
  readonly isCluster: boolean;
  /**
   * A connection of its own for subscriptions, to the server or to this node of the cluster. It does not subscribe
   * again by itself.
   */
  subscriber(at?: { host: string; port: number }): Redis;
  /** Resolves to false if Redis did not answer in time; connecting is still tried. */
  ready(timeoutMs: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface RedisAddress {
  nodes: { host: string; port: number }[];
  cluster: boolean;
  tls: boolean;
  username?: string;
  password?: string;
  db: number;
}

/** Parses `redis[s]://[user:password@]host[:port][,host[:port]…][/db][?cluster=true]`; several hosts are a cluster. */
export function parseRedisUrl(url: string): RedisAddress {
  const parts = /^(rediss?):\/\/(?:([^@/]*)@)?([^/?]+)(?:\/(\d*))?(?:\?cluster=(true|false))?$/.exec(url);
  // The address may contain a password, so the error does not repeat it.
  if (!parts) throw new Error('not a Redis address');
  const [, scheme, credentials = '', hosts = '', db = '', flag] = parts;
  const nodes = hosts.split(',').map((host) => {
    if (!URL.canParse(`redis://${host}`)) throw new Error('not a Redis address');
    const { hostname, port } = new URL(`redis://${host}`);
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  });
  const colon = credentials.indexOf(':');
  const username = decodeURIComponent(colon < 0 ? credentials : credentials.slice(0, colon));
  const password = colon < 0 ? '' : decodeURIComponent(credentials.slice(colon + 1));
  return {
    nodes,
    cluster: flag === 'true' || (flag === undefined && nodes.length > 1),
    tls: scheme === 'rediss',
    ...(username && { username }),
    ...(password && { password }),
    db: Number(db),
  };
}

/** Pauses of 100 ms, 200 ms, … 2 s. */
const backoff = (attempt: number): number => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6));

const require = createRequire(import.meta.url);

/** @param commandTimeoutMs milliseconds after which a command counts as lost. */
export function connectRedis(url: string, logger: Logger, commandTimeoutMs = 1_000): RedisConnection {
  // Loaded here: a service without Redis starts sooner without it.
  const ioredis = require('ioredis') as typeof import('ioredis');
  const address = parseRedisUrl(url);
  const common = {
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.tls && { tls: {} }),
    maxRetriesPerRequest: 0,
    // A running command may have been executed: a second time could double its effect.
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: 2_000,
    // A peer that is silent while an answer is due is dead, whatever TCP says.
    socketTimeout: 5_000,
    keepAlive: 10_000,
  } satisfies RedisOptions;
  const single = { ...common, db: address.db, enableOfflineQueue: false, retryStrategy: backoff };
  const cluster: ClusterOptions = {
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    clusterRetryStrategy: backoff,
    maxRedirections: 6,
    slotsRefreshTimeout: 2_000,
    redisOptions: common,
    // Certificates are for names, so the names must not be resolved first.
    ...(address.tls && { dnsLookup: (name, done) => done(null, name) }),
  };
  const client = address.cluster
    ? new ioredis.Cluster(address.nodes, cluster)
    : new ioredis.Redis({ ...single, ...address.nodes[0]!, enableAutoPipelining: true });
  // The client does not look again by itself after a pipeline that was only partly refused with MOVED. Its own option
  // for this leaves a timer behind if the connection ends in the middle of a look.
  const looking =
    client instanceof ioredis.Cluster
      ? setInterval(() => client.refreshSlotsCache(() => undefined), 2_000).unref()
      : undefined;
  const subscribers = new Set<Redis>();
  logChanges(client, logger, 'Redis');

  return {
    client,
    isCluster: address.cluster,
    subscriber(at) {
      const redis = new ioredis.Redis({ ...single, db: 0, ...(at ?? address.nodes[0]!) });
      logChanges(redis, logger, 'Redis subscription');
      subscribers.add(redis);
      redis.once('end', () => subscribers.delete(redis));
      return redis;
    },
    ready: (timeoutMs) =>
      new Promise((resolve) => {
        if (client.status === 'ready') return resolve(true);
        const done = (): void => {
          clearTimeout(timer);
          client.removeListener('ready', done);
          resolve(client.status === 'ready');
        };
        const timer = setTimeout(done, timeoutMs);
        client.once('ready', done);
      }),
    async close() {
      clearInterval(looking);
      await Promise.all([client, ...subscribers].map(end));
    },
  };
}

/** Between two attempts to connect there is no connection whose end could be awaited. */
function end(client: Redis | Cluster): Promise<void> {
  const pausing = client.status === 'reconnecting' || client.status === 'close' || client.status === 'end';
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 1_000);
    client.once('end', () => {
      clearTimeout(timer);
      resolve();
    });
    client.disconnect();
    if (pausing) client.emit('end');
  });
}

/** Logs one line when the connection is lost and one when it is back, not one per attempt. */
function logChanges(client: Redis | Cluster, logger: Logger, name: string): void {
  let down = false;
  client.on('error', (error: Error) => {
    if (!down) logger.warn({ reason: error.message }, `${name}: no connection`);
    down = true;
  });
  client.on('ready', () => {
    if (down) logger.info(`${name}: connected again`);
    down = false;
  });
}

export interface Script {
  source: string;
  sha: string;
}
export const luaScript = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
});

/** The client; throws while Redis is away, so that nothing waits for it. */
export function present({ client }: RedisConnection): Redis | Cluster {
  if (client.status !== 'ready') throw new Error('Redis is away');
  return client;
}

/** Runs a script; its keys must share a hash tag. If Redis has forgotten the script, its whole text is sent. */
export async function runScript(
  connection: RedisConnection,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const client = present(connection);
  try {
    return await client.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return client.eval(script.source, keys.length, ...keys, ...args);
  }
}
