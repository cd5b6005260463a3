import { readFileSync } from 'node:fs';

/** Descriptors that connections never take: for the store, Redis, files, and requests to others. */
const reserve = (limit: number): number => Math.max(32, Math.min(1_024, Math.floor(limit / 4)));

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

/** How many connections may be open at once: without a free descriptor the process could reach neither its store nor anybody else. */
export const connectionsFor = (limit: number): number => limit - reserve(limit);
