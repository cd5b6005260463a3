import type { Bus } from './bus/port.ts';
import { loneBus } from './bus/memory.ts';
import { redisBus } from './bus/redis.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logging.ts';
import { memoryPresence } from './presence/memory.ts';
import type { PresenceRegistry } from './presence/port.ts';
import { redisPresence } from './presence/redis.ts';
import { memoryRateLimiter } from './rate-limit/memory.ts';
import type { RateLimiter } from './rate-limit/port.ts';
import { redisRateLimiter } from './rate-limit/redis.ts';
import { connectRedis } from './redis.ts';

/** What the processes of one service share: in memory for a single process, in Redis for several. */
export interface Peers {
  bus: Bus;
  registry: PresenceRegistry;
  limiter: RateLimiter;
  /** Whether Redis answers; always true without Redis. */
  reachable(): Promise<boolean>;
  close(): Promise<void>;
}

const reachableMs = 1_000;

export function createPeers(
  redisUrl: string | undefined,
  options: { node: string; clock: Clock; graceMs: number; logger: Logger },
): Peers {
  // Limits go by the monotonic clock: a wall clock that is set back by minutes must not refuse everybody for minutes.
  const clock = { now: () => options.clock.monotonic() };
  if (redisUrl === undefined) {
    return {
      bus: loneBus,
      registry: memoryPresence(options),
      limiter: memoryRateLimiter(clock),
      reachable: () => Promise.resolve(true),
      close: () => Promise.resolve(),
    };
  }
  const connection = connectRedis(redisUrl, options.logger);
  const bus = redisBus({ ...options, connection });
  const registry = redisPresence({ ...options, connection });
  return {
    bus,
    registry,
    limiter: redisRateLimiter({ connection, clock }),
    reachable: () => connection.ready(reachableMs),
    close: async () => {
      await registry.close();
      await bus.close();
      await connection.close();
    },
  };
}
