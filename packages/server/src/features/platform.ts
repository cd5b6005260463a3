import type { Config } from '../config.ts';
import type { Clock, Ids, RandomBytes, Timers } from '../platform/clock.ts';
import { workSettings } from '../platform/jobs/sql/jobs.ts';
import type { WorkSignal } from '../platform/jobs/wake.ts';
import type { Logger } from '../platform/logging.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { NameResolver } from '../platform/outbound/resolver.ts';
import { PgDb } from '../platform/postgres/db.ts';
import type { ConnectionSettings, PgOptions } from '../platform/postgres/db.ts';
import type { RateLimiter } from '../platform/rate-limit/port.ts';
import type { Vault } from '../platform/secrets.ts';
import type { NodeBus } from './node-bus.ts';

/** What the services of features stand on: compose/platform.ts makes it once. */
export interface Platform {
  config: Config;
  connection: ConnectionSettings;
  db: PgDb;
  onError: PgOptions['onError'];
  clock: Clock;
  timers: Timers;
  random: () => number;
  randomBytes: RandomBytes;
  ids: Ids;
  vault: Vault;
  logger: Logger;
  metrics: Metrics;
  /** The name of this process among the nodes. */
  node: string;
  bus: NodeBus;
  limiter: RateLimiter;
  names: NameResolver;
  work: WorkSignal;
  /** Must be called after something was put into the outbox. */
  wakeOutbox: () => void;
  /** The address that this process listens on. */
  listening: () => string;
}

/** A pool apart from that of requests, so that work in the background and requests never wait for each other. */
export const workPool = (
  { connection, onError }: Pick<Platform, 'connection' | 'onError'>,
  max: number,
): PgDb => new PgDb(connection, { max, onError, settings: workSettings });
