import type { Restriction, UserRestriction } from '@parley/protocol';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import { anyRow, oneValue } from '../../../platform/postgres/rows.ts';
import type { TimedPlace } from '../../pages.ts';

/** `conv` is 0 for restrictions in the whole environment. */

interface NewRestriction {
  env: number;
  conv: number;
  user: number;
  kind: Restriction['kind'];
  until: string | null;
  reason: string | null;
  by: number | null;
}

/** Replaces what there was; returns when. */
export const setRestriction = (tx: Tx, row: NewRestriction): Promise<string> =>
  oneValue(
    tx,
    `INSERT INTO restrictions (env, conv, usr, kind, until, reason, by_usr, at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp())
     ON CONFLICT (conv, usr, env) DO UPDATE
       SET kind = excluded.kind, until = excluded.until, reason = excluded.reason, by_usr = excluded.by_usr, at = excluded.at
     RETURNING at`,
    [row.env, row.conv, row.user, row.kind, row.until, row.reason, row.by],
  );

/** Returns whether there was one. */
export const liftRestriction = (tx: Tx, env: number, conv: number, user: number): Promise<boolean> =>
  anyRow(tx, 'DELETE FROM restrictions WHERE conv = $2 AND usr = $3 AND env = $1 RETURNING 1', [
    env,
    conv,
    user,
  ]);

/**
 * Null: the silence is over. The conversation must be locked. Reactions take no lock of it, but keep the member's row until they
 * are committed (set_reactions): those that have seen the row as it was are waited for, and later ones wait for this.
 */
export async function silenceMember(
  tx: Tx,
  env: number,
  conv: number,
  user: number,
  until: string | null,
): Promise<void> {
  const place = [env, conv, user];
  await tx.query('SELECT 1 FROM members WHERE conv = $2 AND usr = $3 AND env = $1 FOR UPDATE', place);
  await tx.query('UPDATE members SET silenced_until = $4 WHERE conv = $2 AND usr = $3 AND env = $1', [
    ...place,
    until,
  ]);
}

const inForce = '(r.until IS NULL OR r.until > clock_timestamp())';

/** How long each of these users is banned, in milliseconds; Infinity without an end. Others are not in the map. */
export async function bansOf(
  db: Queryable,
  env: number,
  conv: number,
  users: readonly number[],
): Promise<Map<number, number>> {
  const rows = await db.query<{ usr: number; ms: number | null }>(
    `SELECT r.usr, CASE WHEN r.until IS NOT NULL THEN greatest(1, ceil(extract(epoch FROM r.until - clock_timestamp()) * 1000))::float8 END AS ms FROM restrictions r
     WHERE r.conv = $2 AND r.usr = ANY($3) AND r.env = $1 AND r.kind = 'ban' AND ${inForce}`,
    [env, conv, users],
  );
  return new Map(rows.map(({ usr, ms }) => [usr, ms ?? Infinity]));
}

/** A server that adds users lifts their bans. */
export async function liftBans(tx: Tx, env: number, conv: number, users: readonly number[]): Promise<void> {
  await tx.query(`DELETE FROM restrictions WHERE conv = $2 AND usr = ANY($3) AND env = $1 AND kind = 'ban'`, [
    env,
    conv,
    users,
  ]);
}

/**
 * Those of a user, in groups and (`conversationId` null) in the environment, or those in a conversation. A place has the
 * number of the other: of the conversation, or of the user.
 */
export const listRestrictions = (
  db: Queryable,
  env: number,
  of: { user: number } | { conv: number },
  after: TimedPlace | null,
  limit: number,
): Promise<(UserRestriction & { no: number })[]> => {
  const [owner, other, no] = 'user' in of ? ['usr', 'conv', of.user] : ['conv', 'usr', of.conv];
  return db.query<UserRestriction & { no: number }>(
    `SELECT r.${other} AS no, c.id AS "conversationId", u.id AS "userId", r.kind, r.until, r.reason, b.id AS by, r.at FROM restrictions r
     CROSS JOIN LATERAL (SELECT id FROM users WHERE no = r.usr AND env = r.env LIMIT 1) u
     LEFT JOIN LATERAL (SELECT id FROM users WHERE no = r.by_usr AND env = r.env LIMIT 1) b ON true
     LEFT JOIN LATERAL (SELECT id FROM conversations WHERE no = r.conv AND env = r.env LIMIT 1) c ON true
     WHERE r.${owner} = $2 AND r.env = $1 AND ${inForce}
       AND ($3::timestamptz IS NULL OR (r.at, r.${other}) < ($3::timestamptz, $4::bigint))
     ORDER BY r.at DESC, r.${other} DESC LIMIT $5`,
    [env, no, after?.[0] ?? null, after?.[1] ?? null, limit],
  );
};

/** Those of an erased user, and its name in those of others. */
export async function forgetRestrictions(tx: Tx, env: number, user: number): Promise<void> {
  await tx.query('DELETE FROM restrictions WHERE usr = $2 AND env = $1', [env, user]);
}
