import type { Queryable } from '../../platform/postgres/db.ts';

/**
 * Counts for analytics that must be exact. They are written in the transaction of what they count, and added up a
 * moment later (migrations/0025). A counter needs no declaration besides its name.
 */
export interface ActivityCounts {
  env: number;
  counts: Record<string, number>;
  /** Numbers of the users who were active by it. */
  users?: readonly number[];
}

export async function recordCounts(tx: Queryable, noted: readonly ActivityCounts[]): Promise<void> {
  if (noted.length === 0) return;
  await tx.query(
    `INSERT INTO activity_notes (at, env, counts, users)
     SELECT clock_timestamp(), u.env, u.counts, ARRAY(SELECT jsonb_array_elements_text(u.users)::bigint)
     FROM unnest($1::int[], $2::jsonb[], $3::jsonb[]) AS u(env, counts, users)`,
    [
      noted.map(({ env }) => env),
      noted.map(({ counts }) => JSON.stringify(counts)),
      noted.map(({ users = [] }) => JSON.stringify(users)),
    ],
  );
}

/** Adds up by environment; `names` says which counters an item raises by one. */
export function counted<T extends { env: number }>(
  items: readonly T[],
  names: (item: T) => readonly string[],
): ActivityCounts[] {
  const byEnv = new Map<number, Record<string, number>>();
  for (const item of items) {
    for (const name of names(item)) {
      let counts = byEnv.get(item.env);
      if (!counts) byEnv.set(item.env, (counts = {}));
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  return [...byEnv].map(([env, counts]) => ({ env, counts }));
}
