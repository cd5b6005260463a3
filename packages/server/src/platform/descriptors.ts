import { readFileSync } from 'node:fs';

/** How many file descriptors are kept free of client connections: for PostgreSQL, Redis, files and outgoing requests. */
const reserve = (limit: number): number => Math.max(32, Math.min(1_024, Math.floor(limit / 4)));

/** How many file descriptors this process may have open; undefined if the system does not say. */
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
 * How many client connections may be open at once: without a free descriptor the process could not reach PostgreSQL
 * or anything else.
 */
export const connectionsFor = (limit: number): number => limit - reserve(limit);
