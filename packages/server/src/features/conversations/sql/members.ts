import type { Member, Role } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { column, oneValue } from '../../../platform/postgres/rows.ts';
import { userOf } from '../../sql/lookups.ts';

const view = `u.id AS "userId", m.role, m.last_read_seq AS "lastReadSeq", m.last_delivered_seq AS "lastDeliveredSeq"`;
const join = `members m CROSS JOIN ${userOf('m.env', 'm.usr')} u`;

export const listMembers = (db: Queryable, env: number, conv: number, after: string, limit: number) =>
  db.query<Member>(
    `SELECT ${view} FROM ${join} WHERE m.env = $1 AND m.conv = $2 AND u.id > $3 ORDER BY u.id LIMIT $4`,
    [env, conv, after, limit],
  );

export const findMembers = (db: Queryable, env: number, conv: number, users: number[]) =>
  db.query<Member & { no: number }>(
    `SELECT u.no, ${view} FROM ${join} WHERE m.env = $1 AND m.conv = $2 AND m.usr = ANY($3) ORDER BY u.id`,
    [env, conv, users],
  );

export const countMembers = (db: Queryable, env: number, conv: number): Promise<number> =>
  oneValue(db, 'SELECT count(*) AS n FROM members WHERE env = $1 AND conv = $2', [env, conv]);

/** Ends a membership; the next sync of that user lists the conversation under `removed`. */
export async function removeMember(db: Queryable, env: number, conv: number, user: number): Promise<void> {
  await db.query(
    `WITH gone AS (DELETE FROM members WHERE env = $1 AND conv = $3 AND usr = $2 RETURNING last_sent_at)
     INSERT INTO departures (env, usr, conv, at, last_sent_at) SELECT $1, $2, $3, activity_now(), (SELECT last_sent_at FROM gone)
     ON CONFLICT (env, usr, conv) DO UPDATE SET at = excluded.at, last_sent_at = excluded.last_sent_at`,
    [env, user, conv],
  );
}

export async function setRole(
  db: Queryable,
  env: number,
  conv: number,
  user: number,
  role: string,
): Promise<void> {
  await db.query('UPDATE members SET role = $4 WHERE env = $1 AND conv = $2 AND usr = $3', [
    env,
    conv,
    user,
    role,
  ]);
}

/** The conversations that the user is or was in: the user can have written nowhere else. */
export const conversationsOf = (db: Queryable, env: number, user: number): Promise<number[]> =>
  column(
    db,
    `SELECT conv FROM members WHERE env + 0 = $1 AND usr = $2
       UNION SELECT conv FROM departures WHERE env + 0 = $1 AND usr = $2 ORDER BY conv`,
    [env, user],
  );

/** A user's place in a conversation. */
export interface Membership {
  role: Role;
  /** For how many milliseconds the member is silenced, here or in the environment; Infinity without an end; null if it is not. */
  silencedMs: number | null;
}

export async function membershipOf(
  db: Queryable,
  env: number,
  conv: number,
  user: number,
): Promise<Membership | undefined> {
  const [row] = await db.query<{ role: Role; until: boolean | null; ms: number | null }>(
    `SELECT m.role, s.until > clock_timestamp() AS until,
       CASE WHEN isfinite(s.until) THEN greatest(1, ceil(extract(epoch FROM s.until - clock_timestamp()) * 1000))::float8 END AS ms
     FROM members m LEFT JOIN LATERAL (
       SELECT silenced_until, CASE WHEN deactivated_at IS NOT NULL THEN coalesce(deactivated_until, 'infinity') END AS deactivated_until FROM users
       WHERE no = m.usr AND (erased_at IS NOT NULL OR silenced_until IS NOT NULL OR deactivated_at IS NOT NULL) LIMIT 1
     ) u ON true CROSS JOIN LATERAL (SELECT greatest(m.silenced_until, u.silenced_until, u.deactivated_until) AS until) s
     WHERE m.env = $1 AND m.conv = $2 AND m.usr = $3`,
    [env, conv, user],
  );
  return row && { role: row.role, silencedMs: row.until ? (row.ms ?? Infinity) : null };
}
