import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Clock } from './clock.ts';
import type { Logger } from './logging.ts';

/** Descriptors that connections never take: for the store, Redis, files, and requests to others. */
const reserve = (limit: number): number => Math.max(32, Math.min(1_024, Math.floor(limit / 4)));
const logEveryMs = 60_000;

/** How many descriptors this process may have open; undefined where the system does not say. */
export function descriptorLimit(limits: string = systemLimits()): number | undefined {
  const soft = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

function systemLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/**
 * Accepts no more connections than leave the reserve free: without a descriptor the process could reach neither its store nor
 * anybody else. What comes beyond is dropped, and the log says so at most once a minute.
 */
export function keepDescriptors(
  server: Server,
  limit: number | undefined,
  options: { logger: Logger; clock: Clock },
): void {
  const { logger, clock } = options;
  if (limit === undefined) return;
  const connections = limit - reserve(limit);
  server.maxConnections = connections;
  logger.info({ descriptors: limit, connections }, 'so many connections fit');
  let dropped = 0;
  let quietUntil = -Infinity;
  server.on('drop', () => {
    dropped++;
    if (clock.monotonic() < quietUntil) return;
    quietUntil = clock.monotonic() + logEveryMs;
    logger.warn({ connections, dropped }, 'connections are dropped: descriptors would run out (ulimit -n)');
    dropped = 0;
  });
}
