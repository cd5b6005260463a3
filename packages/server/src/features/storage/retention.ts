import type { Clock } from '../../platform/clock.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { bufferHours } from '../tenancy/sql/environments.ts';

/** How long an environment's buffer holds messages and events: by its own setting, or by that of the service. */
export interface Retention {
  msOf(env: number): Promise<number>;
  /** Must be called after a change in this process. */
  forget(env: number): void;
}

const hourMs = 3_600_000;
/** A change in another process takes effect after this many milliseconds. */
const knownMs = 10_000;
const mostKnown = 10_000;

export function createRetention(db: Queryable, clock: Clock, usualMs: number): Retention {
  const known = new Map<number, { at: number; ms: number }>();
  return {
    async msOf(env) {
      const now = clock.monotonic();
      const found = known.get(env);
      if (found && now - found.at < knownMs) return found.ms;
      const hours = await bufferHours(db, env);
      const ms = hours === null ? usualMs : hours * hourMs;
      if (known.size >= mostKnown) known.clear();
      known.set(env, { at: now, ms });
      return ms;
    },
    forget: (env) => void known.delete(env),
  };
}
