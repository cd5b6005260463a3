import type { Db, Queryable } from '../../platform/postgres/db.ts';
import type { Placed } from './records.ts';
import type { Copy } from './sql.ts';

/**
 * Records here what the customer's database has confirmed, so that it may leave our store when its time comes. It is
 * a single statement, so that it costs one round trip. It changes nothing unless this process still has the lease,
 * because another one may have changed things since.
 */

export interface Confirmation {
  env: number;
  /** The name of this process in the lease. */
  node: string;
  /** Empty if the records are about messages that are cold already. */
  placed: readonly Placed[];
  refused: ReadonlyMap<Placed, string>;
  /** True if there are records that were refused earlier; those that are accepted now are removed from them. */
  anyRefused: boolean;
}

/** Stores which conversations have confirmed messages, and the time of the oldest of these. */
const noted = `noted AS (
  INSERT INTO sink_conversations AS s (env, conv, oldest_at)
  SELECT mine.env, x.conv, x.at FROM mine, unnest($3::bigint[], $4::timestamptz[]) x(conv, at)
  ON CONFLICT (env, conv) DO UPDATE SET oldest_at = least(s.oldest_at, excluded.oldest_at))`;

const logSql = `WITH mine AS (
    SELECT env FROM storage WHERE env = $1 AND owner = $2 AND mode <> 'managed' FOR NO KEY UPDATE
  ), ${noted}, gone AS (
    DELETE FROM sink_log l USING mine WHERE l.env = $1 AND l.no = ANY($5)
  ) SELECT env FROM mine`;

const copySql = `WITH mine AS (
    UPDATE storage SET copy = $5::jsonb, previous = CASE WHEN $6 THEN NULL ELSE previous END
    WHERE env = $1 AND owner = $2 AND copy ->> 'startedAt' = $7 RETURNING env
  ), ${noted} SELECT env FROM mine`;

/** Removes rows of the log that are done. Returns false if this process no longer has the lease. */
export const confirmLog = (db: Db, confirmation: Confirmation, nos: readonly number[]): Promise<boolean> =>
  confirmed(db, confirmation, logSql, [nos]);

/**
 * Stores that a batch of the copy is done, and where the copy continues. Returns false if the copy was cancelled or
 * started again, or this process no longer has the lease.
 */
export const confirmCopy = (
  db: Db,
  confirmation: Confirmation,
  from: Copy,
  next: Copy | null,
): Promise<boolean> =>
  confirmed(db, confirmation, copySql, [
    next && JSON.stringify(next),
    from.kind === 'move' && next?.kind !== 'move',
    from.startedAt,
  ]);

async function confirmed(db: Db, given: Confirmation, sql: string, more: unknown[]): Promise<boolean> {
  const oldest = new Map<number, string>();
  for (const { conv, record } of given.placed)
    if (record.kind === 'message' && !(oldest.get(conv)! <= record.createdAt))
      oldest.set(conv, record.createdAt);
  const values = [given.env, given.node, [...oldest.keys()], [...oldest.values()], ...more];
  const run = async (on: Queryable) => (await on.query(sql, values)).length > 0;
  if (!given.anyRefused && given.refused.size === 0) return run(db);
  return db.tx(async (tx) => {
    if (!(await run(tx))) return false;
    await setAside(tx, given);
    return true;
  });
}

/** Refused records stay in our store until they are accepted. */
async function setAside(tx: Queryable, { env, placed, refused }: Confirmation): Promise<void> {
  const accepted = placed.filter((p) => !refused.has(p));
  await tx.query(
    `DELETE FROM sink_refused r USING unnest($2::bigint[], $3::bigint[]) x(conv, message)
     WHERE r.env = $1 AND r.conv = x.conv AND r.message = x.message`,
    [env, accepted.map((p) => p.conv), accepted.map((p) => p.message)],
  );
  if (refused.size === 0) return;
  await tx.query(
    `INSERT INTO sink_refused (env, conv, message, error, at) SELECT DISTINCT ON (x.conv, x.message) $1, x.conv, x.message, x.error, clock_timestamp()
     FROM unnest($2::bigint[], $3::bigint[], $4::text[]) x(conv, message, error)
     ON CONFLICT (env, conv, message) DO UPDATE SET error = excluded.error, at = excluded.at`,
    [
      ...[env, [...refused.keys()].map((p) => p.conv), [...refused.keys()].map((p) => p.message)],
      [...refused.values()],
    ],
  );
}
