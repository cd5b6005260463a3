import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import type { Placed } from '../records.ts';
import type { Copy } from '../sql.ts';
import type { Refused } from '../write.ts';

/**
 * Records here what the customer's database has confirmed, so that it may leave our store when its time comes. It is
 * a single statement, so that it costs one round trip. It changes nothing unless this process still has the lease,
 * because another one may have changed things since.
 */

export interface Confirmation {
  env: number;
  node: string;
  /** Empty if the records are about messages that are cold already. */
  placed: readonly Placed[];
  refused: Refused;
}

/**
 * Stores which conversations have confirmed messages, and the time of the oldest of these. Refused records stay in our
 * store until they are accepted.
 */
const noted = `noted AS (
    INSERT INTO sink_conversations AS s (env, conv, oldest_at)
    SELECT mine.env, x.conv, x.at FROM mine, unnest($3::bigint[], $4::timestamptz[]) x(conv, at)
    ON CONFLICT (env, conv) DO UPDATE SET oldest_at = least(s.oldest_at, excluded.oldest_at)
  ), accepted AS (
    DELETE FROM sink_refused r USING mine, unnest($5::bigint[], $6::bigint[]) x(conv, message)
    WHERE r.env = mine.env AND r.conv = x.conv AND r.message = x.message
  ), refused AS (
    INSERT INTO sink_refused (env, conv, message, error, at)
    SELECT mine.env, x.conv, x.message, x.error, clock_timestamp() FROM mine, unnest($7::bigint[], $8::bigint[], $9::text[]) x(conv, message, error)
    ON CONFLICT (env, conv, message) DO UPDATE SET error = excluded.error, at = excluded.at
  )`;

const logSql = `WITH mine AS (
    SELECT env FROM storage WHERE env = $1 AND owner = $2 AND mode <> 'managed' FOR NO KEY UPDATE
  ), ${noted}, gone AS (
    DELETE FROM sink_log l USING mine WHERE l.env = $1 AND l.no = ANY($10)
  ) SELECT env FROM mine`;

const copySql = `WITH mine AS (
    UPDATE storage SET copy = $10::jsonb, previous = CASE WHEN $11 THEN NULL ELSE previous END
    WHERE env = $1 AND owner = $2 AND copy ->> 'startedAt' = $12 RETURNING env
  ), ${noted} SELECT env FROM mine`;

/** Removes rows of the log that are done. Returns false if this process no longer has the lease. */
export const confirmLog = (db: Queryable, given: Confirmation, nos: readonly number[]): Promise<boolean> =>
  confirmed(db, given, logSql, [nos]);

/**
 * Stores that a batch of the copy is done, and where the copy continues. Returns false if the copy was cancelled or
 * started again, or this process no longer has the lease.
 */
export const confirmCopy = (
  db: Queryable,
  given: Confirmation,
  from: Copy,
  next: Copy | null,
): Promise<boolean> =>
  confirmed(db, given, copySql, [
    next && JSON.stringify(next),
    from.kind === 'move' && next?.kind !== 'move',
    from.startedAt,
  ]);

async function confirmed(
  db: Queryable,
  { env, node, placed, refused }: Confirmation,
  sql: string,
  more: unknown[],
): Promise<boolean> {
  const oldest = new Map<number, string>();
  for (const { conv, record } of placed)
    if (record.kind === 'message' && !(oldest.get(conv)! <= record.createdAt))
      oldest.set(conv, record.createdAt);
  // A conversation and its members have one place: it is refused if one of them is.
  const keyOf = ({ conv, message }: Placed): string => `${conv} ${message}`;
  const bad = new Map([...refused].map(([one, error]) => [keyOf(one), { ...one, error }]));
  const good = placed.filter((one) => !bad.has(keyOf(one)));
  const rows = await db.query(sql, [
    env,
    node,
    [...oldest.keys()],
    [...oldest.values()],
    ...arraysOf(good, 'conv', 'message'),
    ...arraysOf([...bad.values()], 'conv', 'message', 'error'),
    ...more,
  ]);
  return rows.length > 0;
}
