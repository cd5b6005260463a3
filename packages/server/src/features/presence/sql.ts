import type { FeatureName, PlanName } from '@parley/protocol';
import { guards } from '../../log/sql/guards.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { conversationOf, deactivatedAt, membershipsOf as members, userOf } from '../sql/lookups.ts';

/** The conversations of many users at once; `ord` is the position in the question, `quiet` see blocks#direct. */
export const membershipsOf = (
  db: Queryable,
  envs: number[],
  users: number[],
): Promise<{ ord: number; cid: string; lastSeq: number; quiet: boolean }[]> =>
  db.query(
    `SELECT w.ord, c.id AS cid, c.last_seq AS "lastSeq", c.flags & ${guards.blockedPair} <> 0 AS quiet FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS w(env, usr, ord)
     CROSS JOIN ${members('w.env', 'w.usr')} m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c WHERE c.deleted_at IS NULL`,
    [envs, users],
  );

export interface Watchable {
  no: number;
  userId: string;
  lastSeenAt: string | null;
}

export const usersById = (db: Queryable, env: number, ids: readonly string[]): Promise<Watchable[]> =>
  db.query<Watchable>(
    `SELECT u.no, u.id AS "userId", u.last_seen_at AS "lastSeenAt" FROM unnest($2::text[]) AS w(id)
     CROSS JOIN LATERAL (SELECT * FROM users WHERE env = $1 AND id = w.id AND erased_at IS NULL LIMIT 1) u`,
    [env, ids],
  );

/** Users by their numbers, without erased ones. */
export const usersByNumber = (
  db: Queryable,
  users: readonly { env: number; user: number }[],
): Promise<Watchable[]> =>
  db.query<Watchable>(
    `SELECT u.no, u.id AS "userId", u.last_seen_at AS "lastSeenAt" FROM unnest($1::int[], $2::bigint[]) AS w(env, usr)
     CROSS JOIN ${userOf('w.env', 'w.usr')} u WHERE u.erased_at IS NULL`,
    [users.map((u) => u.env), users.map((u) => u.user)],
  );

/** A session that must end, because of the present state of its environment, its key or (if asked) its user. */
export interface Standing {
  ord: number;
  suspended: boolean;
  deactivated: boolean;
}
export interface Terms {
  plan: PlanName;
  disabledFeatures: FeatureName[];
  words: number;
  hooks: number;
}
/** The present plans of environments and what is off in them, by environment number. */
export async function termsOf(db: Queryable, envs: readonly number[]): Promise<Map<number, Terms>> {
  const rows = await db.query<Terms & { no: number }>(
    `SELECT no, plan, words, hooks, coalesce(settings -> 'disabledFeatures', '[]') AS "disabledFeatures" FROM environments WHERE no = ANY($1)`,
    [envs],
  );
  return new Map(rows.map(({ no, ...terms }) => [no, terms]));
}

export const standings = (
  db: Queryable,
  sessions: { env: number; user: number | null; keyId: string | null; issuedAt: number }[],
): Promise<Standing[]> =>
  db.query<Standing>(
    `SELECT w.ord, e.status = 'suspended' AS suspended, ${deactivatedAt('u')} IS NOT NULL AS deactivated
     FROM unnest($1::int[], $2::bigint[], $3::text[], $4::float8[]) WITH ORDINALITY AS w(env, usr, key, iat, ord)
     JOIN environments e ON e.no = w.env LEFT JOIN secret_keys k ON k.id = w.key
     LEFT JOIN users u ON u.env = w.env AND u.no = w.usr
     WHERE e.status = 'suspended' OR k.revoked_at IS NOT NULL OR ${deactivatedAt('u')} IS NOT NULL
       OR u.tokens_from > to_timestamp(w.iat)`,
    [
      sessions.map((s) => s.env),
      sessions.map((s) => s.user),
      sessions.map((s) => s.keyId),
      sessions.map((s) => s.issuedAt),
    ],
  );
