import { defaultSettings } from '@parley/protocol';
import type { FeatureName, PlanName } from '@parley/protocol';
import { guards, typingLimits } from '../../log/sql/guards.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf } from '../../platform/postgres/rows.ts';
import { conversationOf, deactivatedAt, memberOf, membershipsOf as members, userOf } from '../sql/lookups.ts';

/** A silence of the user, in its environment; nearly no user is in the index that this asks (users_refused). */
const barred = (env: string, usr: string): string =>
  `LATERAL (SELECT silenced_until FROM users WHERE no = ${usr} AND env = ${env} AND (erased_at IS NOT NULL OR silenced_until IS NOT NULL) LIMIT 1)`;
const silenced = 'coalesce(greatest(m.silenced_until, s.silenced_until) > clock_timestamp(), false)';

/** The conversations of many users at once; `ord` is the position in the question. */
export const membershipsOf = (
  db: Queryable,
  users: readonly { env: number; user: number }[],
): Promise<{ ord: number; cid: string; lastSeq: number; limited: boolean; silenced: boolean }[]> =>
  db.query(
    `SELECT w.ord, c.id AS cid, c.last_seq AS "lastSeq", c.flags & ${typingLimits} <> 0 AS limited, ${silenced} AS silenced
     FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS w(env, usr, ord) LEFT JOIN ${barred('w.env', 'w.usr')} s ON true
     CROSS JOIN ${members('w.env', 'w.usr')} m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c WHERE c.deleted_at IS NULL`,
    arraysOf(users, 'env', 'user'),
  );

export interface Typist {
  env: number;
  cid: string;
  user: number;
}

/** Which of them may write there, and so type; in their order. */
export async function mayType(db: Queryable, typists: readonly Typist[]): Promise<boolean[]> {
  const rows = await db.query<{ ord: number }>(
    `SELECT w.ord FROM unnest($1::int[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w(env, cid, usr, ord)
     CROSS JOIN LATERAL (SELECT * FROM conversations WHERE env = w.env AND id = w.cid LIMIT 1) c
     CROSS JOIN ${memberOf('w.env', 'c.no', 'w.usr')} m LEFT JOIN ${barred('w.env', 'w.usr')} s ON true
     WHERE c.flags & ${guards.blockedPair} = 0 AND (c.flags & ${guards.posting} = 0 OR m.role <> 'member') AND NOT ${silenced}`,
    arraysOf(typists, 'env', 'cid', 'user'),
  );
  const may = new Set(rows.map(({ ord }) => ord));
  return typists.map((_, i) => may.has(i + 1));
}

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
    arraysOf(users, 'env', 'user'),
  );

/** What an environment may use. */
export interface Terms {
  plan: PlanName;
  disabledFeatures: FeatureName[];
  words: number;
  hooks: number;
}

/** The present terms of environments, by environment number. */
export async function termsOf(db: Queryable, envs: readonly number[]): Promise<Map<number, Terms>> {
  const rows = await db.query<Terms & { no: number }>(
    `SELECT no, plan, words, hooks, coalesce(settings -> 'disabledFeatures', '[]') AS "disabledFeatures" FROM environments WHERE no = ANY($1)`,
    [envs],
  );
  return new Map(rows.map(({ no, ...terms }) => [no, terms]));
}

/** A session that must end, because of the present state of its environment, its key or (if asked) its user. */
export interface RevokedSession {
  /** Its place in the question, from 1. */
  ord: number;
  /** The environment takes nobody, or no unsigned tokens any more. */
  closed: boolean;
  deactivated: boolean;
}

/** Sessions without a key are those of unsigned tokens. */
const isClosed = `(e.status = 'suspended' OR w.key IS NULL AND (e.kind = 'production'
  OR NOT coalesce((e.settings ->> 'devTokens')::boolean, ${defaultSettings.devTokens})))`;

export const revokedSessions = (
  db: Queryable,
  sessions: { env: number; user: number | null; keyId: string | null; issuedAt: number }[],
): Promise<RevokedSession[]> =>
  db.query<RevokedSession>(
    `SELECT w.ord, ${isClosed} AS closed, ${deactivatedAt('u')} IS NOT NULL AS deactivated
     FROM unnest($1::int[], $2::bigint[], $3::text[], $4::float8[]) WITH ORDINALITY AS w(env, usr, key, iat, ord)
     JOIN environments e ON e.no = w.env LEFT JOIN secret_keys k ON k.id = w.key
     LEFT JOIN ${userOf('w.env', 'w.usr')} u ON true
     WHERE ${isClosed} OR k.revoked_at IS NOT NULL OR ${deactivatedAt('u')} IS NOT NULL
       OR u.tokens_from > to_timestamp(w.iat)`,
    arraysOf(sessions, 'env', 'user', 'keyId', 'issuedAt'),
  );
