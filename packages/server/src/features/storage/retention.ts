import type { Queryable } from '../../platform/postgres/db.ts';
import { bufferHours } from '../tenancy/sql/environments.ts';

/** How many milliseconds an environment's buffer holds messages and events: by its own setting, or by that of the service. */
export type RetentionMs = ReturnType<typeof createRetention>;

export const createRetention =
  (db: Queryable, usualMs: number) =>
  async (env: number): Promise<number> => {
    const hours = await bufferHours(db, env);
    return hours === null ? usualMs : hours * 3_600_000;
  };
