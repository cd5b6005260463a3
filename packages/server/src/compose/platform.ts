import { realtime } from '@parley/protocol';
import { listenOrigin } from '../config.ts';
import type { Config, RoleName } from '../config.ts';
import type { Services } from '../features/context.ts';
import { NodeBus } from '../features/node-bus.ts';
import { logConnections, logSettings } from '../log/sql/append.ts';
import { createIds, systemTimers } from '../platform/clock.ts';
import type { Clock, RandomBytes, Timers } from '../platform/clock.ts';
import { wakeOutbox } from '../platform/jobs/outbox.ts';
import { createWorkSignal } from '../platform/jobs/wake.ts';
import type { Logger } from '../platform/logging.ts';
import { createMetrics } from '../platform/metrics.ts';
import { createResolver } from '../platform/outbound/resolver.ts';
import { createParts } from '../platform/parts.ts';
import { createPeers } from '../platform/peers.ts';
import { PgDb } from '../platform/postgres/db.ts';
import type { Store } from '../platform/postgres/store.ts';
import { createVault, parseMasterKey } from '../platform/secrets.ts';
import type { MasterKeys } from '../platform/secrets.ts';

export interface ServiceOptions {
  config: Config;
  store: Store;
  logger: Logger;
  clock: Clock;
  /** The timers of sockets. Batches, commits and writes always use the real ones. */
  timers?: Timers;
  /** A number from 0 up to but not including 1, for jitter. */
  random: () => number;
  /** Random bytes for ids, keys and secrets. */
  randomBytes: RandomBytes;
  /** Milliseconds that clients get to leave when the service stops. */
  drainMs?: number;
  /** Migrates the store although processes of earlier versions serve. */
  force?: boolean;
  /** What the plans allow. */
  plans?: Services['plans'];
  /** What the processes of the service share. */
  peers?: typeof createPeers;
}

/** A value that is known only after the start. */
function createLater<T>(name: string) {
  let known: T | undefined;
  return {
    get(): T {
      if (known === undefined) throw new Error(`${name} is not known yet`);
      return known;
    },
    set(value: T): void {
      known = value;
    },
  };
}

/** What everything else stands on: the store, the other processes of the service, and the adapters of the machine. */
export function createPlatform(options: ServiceOptions) {
  const { config, store, logger, clock, random, randomBytes } = options;
  const { timers = systemTimers } = options;
  const ids = createIds(clock, randomBytes);
  const metrics = createMetrics();
  // The error of a lost connection has the whole client as a field, so only its text is logged.
  const onError = (error: Error, what: string) =>
    logger.warn({ part: 'postgres', reason: error.message, stack: error.stack }, what);
  const { connection } = store;
  const db = new PgDb(connection, { max: config.pool, onError });
  const logDb = new PgDb(connection, { max: logConnections, onError, settings: logSettings });
  metrics.gauge('parley_pool_connections', 'Open connections to PostgreSQL', () => db.pool.totalCount);
  metrics.gauge('parley_pool_waiting', 'Requests waiting for a connection', () => db.pool.waitingCount);

  if (config.masterKey) parseMasterKey(config.masterKey);
  const masterKeys = createLater<MasterKeys>('the master key');
  const port = createLater<number>('the port');

  const node = ids.secret(12);
  const peers = (options.peers ?? createPeers)(config.redisUrl, {
    node,
    clock,
    logger,
    graceMs: realtime.presenceGraceMs,
  });
  const { registry, limiter } = peers;
  const work = createWorkSignal({ db, connection, logger });
  return {
    config,
    connection,
    logger,
    clock,
    timers,
    random,
    randomBytes,
    ids,
    metrics,
    onError,
    db,
    logDb,
    masterKeys,
    vault: createVault(() => masterKeys.get()),
    port,
    listening: () => listenOrigin({ host: config.host, port: port.get() }),
    node,
    peers,
    bus: new NodeBus(peers.bus),
    registry,
    limiter,
    work,
    wakeOutbox: () => wakeOutbox(work),
    names: createResolver({ now: () => clock.monotonic(), servers: config.dnsServers }),
    parts: createParts<RoleName>(config.roles, logger),
  };
}

export type Platform = ReturnType<typeof createPlatform>;
